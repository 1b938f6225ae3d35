// Plays blocks when they are due, counted in frames of this context.
class Player extends AudioWorkletProcessor {
  constructor() {
    super();
    this.blocks = [];
    this.port.onmessage = ({ data }) => {
      if (data.drop !== undefined) this.blocks = this.blocks.filter((b) => b.at < data.drop);
      else this.blocks.push(data);
      if (this.blocks.length > 400) this.blocks.shift();
    };
  }
  process(_inputs, outputs) {
    const out = outputs[0][0];
    const end = currentFrame + out.length;
    while (this.blocks.length) {
      const { samples, at } = this.blocks[0];
      if (at >= end) break;
      const from = Math.max(0, currentFrame - at);
      const to = Math.min(samples.length, end - at);
      for (let i = from; i < to; i++) out[at + i - currentFrame] = samples[i];
      if (at + samples.length > end) break;
      this.blocks.shift();
    }
    for (let c = 1; c < outputs[0].length; c++) outputs[0][c].set(out);
    return true;
  }
}
registerProcessor("player", Player);
