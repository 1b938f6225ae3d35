// The microphone's sound, as 16 bit blocks of 32 ms or so, and its level.
class Capture extends AudioWorkletProcessor {
  constructor() {
    super();
    this.size = Math.round(sampleRate * 0.032);
    this.block = new Int16Array(this.size);
    this.filled = 0;
    this.sum = 0;
  }
  process(inputs) {
    const input = inputs[0][0];
    if (!input) return true;
    for (const sample of input) {
      const clipped = Math.max(-1, Math.min(1, sample));
      this.block[this.filled++] = clipped * 32767;
      this.sum += clipped * clipped;
      if (this.filled === this.size) {
        const message = new Uint8Array(1 + 2 * this.size);
        message[0] = 1;
        message.set(new Uint8Array(this.block.buffer), 1);
        this.port.postMessage({ message, level: Math.sqrt(this.sum / this.size) }, [message.buffer]);
        this.filled = 0;
        this.sum = 0;
      }
    }
    return true;
  }
}
registerProcessor("capture", Capture);
