// This browser as the glasses: microphone and camera to the companion, its voice to the speaker.
const PICTURE_MS = 1000;
const TAKEN = 4001; // the code with which the companion closes a page when another is the glasses
const AGAIN_MS = [500, 1000, 2000, 4000];

export class Glasses extends EventTarget {
  #socket = null;
  #closed = false;
  #failures = 0;
  #offset = 0;
  #id = crypto.randomUUID();
  #before = false; // it was connected: from then on another page may have taken the glasses

  constructor(video) {
    super();
    this.video = video;
    this.seeing = true;
  }

  // Asks for microphone and camera, then connects. Throws what getUserMedia throws for the microphone.
  async start() {
    const audio = { echoCancellation: true, noiseSuppression: true, autoGainControl: true, channelCount: 1 };
    this.microphone = await navigator.mediaDevices.getUserMedia({ audio });
    try {
      const video = { width: { ideal: 640 }, height: { ideal: 480 }, facingMode: "environment" };
      this.camera = await navigator.mediaDevices.getUserMedia({ video });
      this.video.srcObject = this.camera;
      await this.video.play();
    } catch (error) {
      this.camera = null;
      this.#tell("no-camera", error.name);
    }
    this.ears = await this.#context({ sampleRate: 16000 });
    const capture = new AudioWorkletNode(this.ears, "capture", { numberOfOutputs: 0 });
    this.ears.createMediaStreamSource(this.microphone).connect(capture);
    capture.port.onmessage = ({ data }) => {
      this.#tell("level", data.level);
      if (this.#open()) this.#socket.send(data.message);
    };
    // The voice holds nothing above 12 kHz: half the bytes of what sound cards run at.
    this.mouth = await this.#context({ sampleRate: 24000 }, "player");
    this.player = new AudioWorkletNode(this.mouth, "player", { numberOfInputs: 0, outputChannelCount: [1] });
    this.player.connect(this.mouth.destination);
    this.timer = setInterval(() => this.#look(), PICTURE_MS);
    this.#connect();
  }

  async #context(options, name = "capture") {
    let made;
    try {
      made = new AudioContext(options);
      if (name === "capture") made.createMediaStreamSource(this.microphone).disconnect();
    } catch {
      // Not every browser takes a microphone at another rate than its own; the companion resamples.
      made = new AudioContext();
    }
    await made.audioWorklet.addModule(`/page/${name}.js`);
    await made.resume();
    return made;
  }

  stop() {
    if (this.#closed) return;
    this.#closed = true;
    clearInterval(this.timer);
    for (const stream of [this.microphone, this.camera]) stream?.getTracks().forEach((track) => track.stop());
    this.ears?.close();
    this.mouth?.close();
    this.video.srcObject = null;
    this.#socket?.close();
  }

  send(event) {
    if (this.#open()) this.#socket.send(JSON.stringify(event));
  }

  #open() {
    return this.#socket?.readyState === WebSocket.OPEN;
  }

  #tell(kind, detail) {
    this.dispatchEvent(new CustomEvent(kind, { detail }));
  }

  #connect() {
    const socket = new WebSocket(`${location.origin.replace(/^http/, "ws")}/api/glasses`);
    socket.binaryType = "arraybuffer";
    this.#socket = socket;
    socket.onopen = () => {
      this.#failures = 0;
      const latency_s = (this.mouth.baseLatency || 0) + (this.mouth.outputLatency || 0);
      const rates = { rate_in: this.ears.sampleRate, rate_out: this.mouth.sampleRate };
      this.send({ kind: "hello", ...rates, latency_s, id: this.#id, again: this.#before });
      this.#before = true;
      this.#tell("link", "connected");
      this.#look();
    };
    socket.onmessage = ({ data }) => (typeof data === "string" ? this.#event(JSON.parse(data)) : this.#sound(data));
    socket.onclose = ({ code }) => {
      if (this.#closed) return;
      if (code === TAKEN) return this.#event({ kind: "taken" });
      this.#tell("link", "lost");
      const wait = AGAIN_MS[Math.min(this.#failures++, AGAIN_MS.length - 1)];
      setTimeout(() => this.#closed || this.#connect(), wait);
    };
  }

  #event(event) {
    if (event.kind === "begin") {
      const offset = this.mouth.currentTime - event.now_s + event.ahead_s;
      // A reply goes on in the time of the one before unless the clocks have drifted apart.
      if (Math.abs(offset - this.#offset) > 0.02) this.#offset = offset;
    } else if (event.kind === "drop") {
      this.player.port.postMessage({ drop: this.#frame(event.from_s) });
    } else {
      if (event.kind === "taken") this.stop();
      this.#tell("told", event);
    }
  }

  #sound(data) {
    const at = this.#frame(new DataView(data).getFloat64(0, true));
    const samples = Float32Array.from(new Int16Array(data.slice(8)), (s) => s / 32768);
    this.player.port.postMessage({ samples, at }, [samples.buffer]);
  }

  #frame(at_s) {
    return Math.round((at_s + this.#offset) * this.mouth.sampleRate);
  }

  // One picture, as small as the companion needs it.
  async #look() {
    if (!this.camera || !this.seeing || !this.#open() || !this.video.videoWidth) return;
    const scale = Math.min(1, 640 / this.video.videoWidth);
    const canvas = new OffscreenCanvas(this.video.videoWidth * scale, this.video.videoHeight * scale);
    canvas.getContext("2d").drawImage(this.video, 0, 0, canvas.width, canvas.height);
    const jpeg = await canvas.convertToBlob({ type: "image/jpeg", quality: 0.8 });
    if (this.seeing && this.#open()) this.#socket.send(new Blob([new Uint8Array([2]), jpeg]));
  }
}
