"use strict";
// The page of `leeway stream --serve`: frames by WebSocket, painted as they come.
const $ = (id) => document.getElementById(id);
const views = { input: $("input"), output: $("output") };
const HEAD = 72, MARK = 16;
const mark = crypto.getRandomValues(new Uint8Array(8)); // whose camera a frame is from
let socket, settings = {}, stats = {}, last = null, retry = 250;
let offset = null, bestTrip = Infinity; // server's clock less this page's, seconds
let stamps = []; // of the newest frames painted
let painting = Promise.resolve(); // one frame after the other
let seen = { frames: 0, missed: 0, number: -1 };
let turning = null; // the knob in hand
let opened = false, heard = false; // of this connection

const now = () => performance.now() / 1000;

// ---- frames ----------------------------------------------------------------------------------

function readFrame(buffer) {
  const v = new DataView(buffer), text = String.fromCharCode(...new Uint8Array(buffer, 0, 4));
  if (buffer.byteLength < HEAD || text !== "LWF1") return null;
  const n = [v.getUint32(4, true), v.getUint32(8, true)];
  const f = {
    number: Number(v.getBigInt64(16, true)),
    captured: v.getFloat64(24, true), taken: v.getFloat64(32, true),
    computed: v.getFloat64(40, true), encoded: v.getFloat64(48, true),
    own: mark.every((b, i) => v.getUint8(56 + i) === b), stamp: v.getFloat64(64, true),
  };
  const jpeg = (from, size) => new Blob([new Uint8Array(buffer, from, size)], { type: "image/jpeg" });
  f.input = n[0] ? jpeg(HEAD, n[0]) : null;
  f.output = n[1] ? jpeg(HEAD + n[0], n[1]) : null;
  return f;
}

async function paint(name, blob) {
  if (!blob) return;
  const picture = await createImageBitmap(blob), canvas = views[name];
  if (canvas.width !== picture.width || canvas.height !== picture.height) {
    canvas.width = picture.width;
    canvas.height = picture.height;
  }
  canvas.getContext("2d").drawImage(picture, 0, 0);
  picture.close();
}

// Milliseconds: of the network, from it to the eye, and from the camera to the eye.
function stampFrame(f) {
  const painted = now(), s = { at: painted, number: f.number, model: (f.computed - f.taken) * 1e3 };
  if (offset !== null) {
    s.transport = (painted + offset - f.computed) * 1e3;
    s.glass = (painted + offset - f.captured) * 1e3;
  }
  if (f.own) s.glass = (painted - f.stamp) * 1e3; // its own clock: exact
  stamps.push(s);
  if (stamps.length > 1800) stamps.splice(0, 900);
}

async function onFrame(buffer) {
  const f = readFrame(buffer);
  if (!f) return;
  try {
    await Promise.all([$("split").checked ? paint("input", f.input) : null, paint("output", f.output)]);
  } catch (e) {
    return; // a picture that does not decode: the last one stays
  } finally {
    if (socket.readyState === 1) socket.send("a");
  }
  if (seen.number >= 0 && f.number > seen.number + 1) seen.missed += f.number - seen.number - 1;
  seen.number = f.number;
  seen.frames++;
  last = now();
  stampFrame(f);
}

// ---- numbers ---------------------------------------------------------------------------------

const quantile = (sorted, q) => sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))];

function summary(key) {
  const v = stamps.map((s) => s[key]).filter((x) => x !== undefined).sort((a, b) => a - b);
  if (!v.length) return null;
  return { p50: quantile(v, .5), p95: quantile(v, .95), p99: quantile(v, .99), max: v[v.length - 1] };
}

const ms = (x) => (x === null || x === undefined ? "-" : x < 9.95 ? x.toFixed(2) : x.toFixed(1));

function fps() {
  const since = now() - 2, n = stamps.filter((s) => s.at > since).length;
  return n / 2;
}

function showOverlay() {
  const model = summary("model"), transport = summary("transport"), glass = summary("glass");
  const s = stats.stream || {};
  const drops = (s.dropped_in || 0) + (s.dropped_out || 0);
  $("overlay").textContent = !model ? "" :
    `${fps().toFixed(1)} fps painted, ${(s.fps_network || 0).toFixed(1)} fps network\n` +
    `model     ${ms(model.p50)} ms\ntransport ${ms(transport && transport.p50)} ms\n` +
    `glass to glass ${ms(glass && glass.p50)} ms, p95 ${ms(glass && glass.p95)}\n` +
    `dropped ${drops} in the pipeline, ${seen.missed} not seen here`;
}

const meaning = {
  read: "captured to decoded", wait: "decoded to taken", compute: "the network", out: "computed to written",
  glass_to_glass: "captured to written, in the program", transport: "computed to painted here",
  painted: "captured to painted here",
};

function showTable() {
  const parts = Object.assign({}, (stats.stream || {}).latency_ms);
  parts.transport = summary("transport");
  parts.painted = summary("glass");
  const body = $("latency").tBodies[0];
  body.replaceChildren();
  for (const [name, p] of Object.entries(parts)) {
    if (!p) continue;
    const row = body.insertRow();
    for (const text of [name, ms(p.p50), ms(p.p95), ms(p.p99), ms(p.max), meaning[name] || ""])
      row.insertCell().textContent = text;
  }
  const s = stats.stream || {}, v = stats.serve || {};
  $("counts").textContent = s.frames_in === undefined ? "" :
    `${s.frames_in} frames in, ${s.frames_network} through the network; ${v.watching} watching; ` +
    `encoding ${ms(v.encode_ms)} ms a frame`;
}

function showState() {
  const el = $("state"), open = socket && socket.readyState === 1;
  const still = last === null ? "no frame yet" : `no frame for ${(now() - last).toFixed(0)} s`;
  const frozen = last === null || now() - last > 2;
  el.textContent = !open ? "not connected, trying again" : settings.paused ? "paused" : frozen ? still : "live";
  el.className = !open ? "broken" : frozen || settings.paused ? "waiting" : "live";
  const words = open && frozen && !settings.paused ? "no frames" : el.textContent; // read aloud: no seconds
  if ($("spoken").textContent !== words) $("spoken").textContent = words;
}

setInterval(() => { showState(); showOverlay(); showTable(); }, 500);

// ---- settings --------------------------------------------------------------------------------

// What went wrong, until something goes well.
function say(text) {
  if ($("said").textContent !== text) $("said").textContent = text; // once: it is read aloud
}

// The server's answer, or an error with its reason.
async function ask(path, options) {
  const answer = await fetch(path, options).catch(() => { throw new Error("no answer: is the program still running?"); });
  if (answer.ok) return answer;
  const why = await answer.json().catch(() => ({}));
  throw new Error(why.error || `${answer.status} ${answer.statusText}`);
}

async function send(change) {
  try {
    const answer = await ask("settings", {
      method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(change),
    });
    say("");
    showSettings(await answer.json());
  } catch (e) {
    say(e.message);
    if (settings.knobs) showSettings(settings); // as they still are
  }
}

// A number of more values than a slider has places is typed.
const typed = (knob) => !knob.choices && (knob.most - knob.least) / knob.step > 5000;

function makeInput(knob) {
  if (!knob.choices)
    return Object.assign(document.createElement("input"),
      { type: typed(knob) ? "number" : "range", min: knob.least, max: knob.most, step: knob.step });
  const select = document.createElement("select");
  knob.choices.forEach((text, i) => select.append(new Option(text, i)));
  return select;
}

function showKnob(knob) {
  let input = document.querySelector(`[data-knob="${CSS.escape(knob.name)}"]`);
  if (!input) {
    const label = document.createElement("label"), text = document.createElement("span");
    const value = document.createElement("output");
    input = makeInput(knob);
    value.hidden = !!knob.choices || typed(knob);
    input.dataset.knob = knob.name;
    text.textContent = knob.label;
    const cost = document.createElement("small");
    cost.textContent = knob.cost === "live" ? "" : knob.cost === "reset" ? " (forgets earlier frames)" : " (built anew)";
    text.append(cost);
    label.append(text, value, input);
    $("knobs").append(label);
    input.addEventListener("input", () => {
      value.textContent = input.value;
      turning = input;
    });
    input.addEventListener("change", () => turn(knob, input));
    for (const end of ["blur", "pointerup", "pointercancel"]) // let go where it was: nothing changed
      input.addEventListener(end, () => { if (turning === input) turning = null; });
  }
  if (input === turning) return; // what another page turns does not take it out of this hand
  input.value = knob.value;
  input.previousElementSibling.textContent = input.value;
}

function turn(knob, input) {
  turning = null;
  if (input.value !== "" && input.checkValidity()) return send({ [knob.name]: Number(input.value) });
  say(`${knob.name}: ${input.validationMessage || "a number, please"}`);
  showSettings(settings); // as they still are
}

const shape = (s) => JSON.stringify(s.knobs.map((knob) => ({ ...knob, value: 0 })));

function showSettings(s) {
  if (settings.knobs && shape(settings) !== shape(s)) $("knobs").replaceChildren(); // another program's
  settings = s;
  $("title").textContent = s.title || "";
  $("pause").setAttribute("aria-pressed", s.paused);
  $("pause").textContent = s.paused ? "Go on" : "Pause";
  $("camera").hidden = !s.camera;
  s.knobs.forEach(showKnob);
}

$("pause").onclick = () => send({ paused: !settings.paused });
$("reset").onclick = () => { stamps = []; send({ reset: true }); };
function showViews() {
  $("views").classList.toggle("single", !$("split").checked);
  $("views").classList.toggle("plain", !$("numbers").checked);
}
$("split").onchange = $("numbers").onchange = showViews;
addEventListener("pageshow", showViews); // browsers tick boxes again as they were when one comes back
$("knobs").onsubmit = (e) => e.preventDefault();

function save(blob, name) {
  const a = document.createElement("a");
  a.href = URL.createObjectURL(blob);
  a.download = name;
  a.click();
  setTimeout(() => URL.revokeObjectURL(a.href), 10000);
}

const stamp = () => new Date().toISOString().replace(/[:.]/g, "-").slice(0, 19);

$("snapshot").onclick = async () => {
  try {
    save(await (await ask("snapshot")).blob(), `leeway-${stamp()}.png`);
    say("");
  } catch (e) {
    say(`snapshot: ${e.message}`);
  }
};

let recorder = null;
$("record").onclick = () => {
  if (recorder) return recorder.stop();
  const parts = [];
  try {
    recorder = new MediaRecorder(views.output.captureStream(), { mimeType: "video/webm" });
  } catch (e) {
    return say(`record: this browser makes no WebM: ${e.message}`);
  }
  recorder.ondataavailable = (e) => parts.push(e.data);
  recorder.onstop = () => {
    recorder = null;
    $("record").setAttribute("aria-pressed", "false");
    $("record").textContent = "Record";
    save(new Blob(parts, { type: "video/webm" }), `leeway-${stamp()}.webm`);
  };
  recorder.start(1000);
  $("record").setAttribute("aria-pressed", "true");
  $("record").textContent = "Stop recording";
};

// ---- camera ----------------------------------------------------------------------------------

let camera = null; // {stream, video, timer}

function cameraMessage(jpeg, captured) {
  const head = new Uint8Array(MARK);
  head.set(mark);
  new DataView(head.buffer).setFloat64(8, captured, true);
  return new Blob([head, jpeg]);
}

// The middle of the camera's picture in the pipeline's shape; nothing while the last is on its way.
function sendPicture(video, canvas) {
  if (socket.readyState !== 1 || socket.bufferedAmount > 0 || video.readyState < 2 || camera.busy) return;
  const { width, height } = settings.camera, captured = now();
  const scale = Math.max(width / video.videoWidth, height / video.videoHeight);
  const w = width / scale, h = height / scale;
  canvas.width = width;
  canvas.height = height;
  canvas.getContext("2d").drawImage(video, (video.videoWidth - w) / 2, (video.videoHeight - h) / 2, w, h,
    0, 0, width, height);
  camera.busy = true;
  const from = camera;
  canvas.toBlob((jpeg) => {
    from.busy = false;
    if (jpeg && from === camera && socket.readyState === 1) socket.send(cameraMessage(jpeg, captured));
  }, "image/jpeg", .8);
}

async function startCamera() {
  const { width, height, fps } = settings.camera;
  if (!navigator.mediaDevices) throw new Error("browsers give cameras to https and localhost only");
  const stream = await navigator.mediaDevices.getUserMedia({
    video: { width: { ideal: width }, height: { ideal: height }, frameRate: { ideal: fps } }, audio: false,
  });
  const video = document.createElement("video"), canvas = document.createElement("canvas");
  video.muted = true;
  video.srcObject = stream;
  await video.play();
  camera = { stream, busy: false, timer: setInterval(() => sendPicture(video, canvas), 1000 / fps) };
  stream.getVideoTracks()[0].onended = () => { // pulled out, or taken back: its last picture is none
    if (camera && camera.stream === stream) stopCamera();
    say("camera: it went away");
    showCamera();
  };
}

function stopCamera() {
  clearInterval(camera.timer);
  camera.stream.getTracks().forEach((t) => t.stop());
  camera = null;
}

function showCamera() {
  $("camera").textContent = camera ? "Stop camera" : "Start camera";
  $("camera").setAttribute("aria-pressed", camera !== null);
}

let starting = false; // one question to the browser at a time
$("camera").onclick = async () => {
  if (starting) return;
  starting = true;
  try {
    say("");
    if (camera) stopCamera(); else await startCamera();
  } catch (e) {
    say(`camera: ${e.message}`);
  }
  starting = false;
  showCamera();
};

// ---- the connection --------------------------------------------------------------------------

// "t<ms>" is answered with "t<ms> <server's seconds>": the shortest trip says most of the clocks.
function onTime(text) {
  const [sent, server] = text.slice(1).split(" ").map(Number), trip = performance.now() - sent;
  bestTrip *= 1.02; // clocks drift apart: an old trip counts less
  if (trip > bestTrip) return;
  bestTrip = trip;
  offset = server - (sent + trip / 2) / 1000;
}

const askTime = () => { if (socket.readyState === 1) socket.send(`t${performance.now().toFixed(3)}`); };

function onMessage(e) {
  heard = true;
  retry = 250;
  if (typeof e.data !== "string") {
    painting = painting.then(() => onFrame(e.data)).catch(() => null); // one frame stops no others
    return;
  }
  if (e.data[0] === "t") return onTime(e.data);
  const j = JSON.parse(e.data);
  if (j.settings) return showSettings(j.settings);
  stats = j;
  $("note").textContent = j.note || "";
}

function connect() {
  const url = new URL("ws", location.href);
  url.protocol = location.protocol === "https:" ? "wss:" : "ws:";
  url.search = "";
  socket = new WebSocket(url, "leeway");
  socket.binaryType = "arraybuffer";
  socket.onmessage = onMessage;
  opened = heard = false;
  socket.onopen = () => {
    opened = true;
    bestTrip = Infinity;
    offset = null; // perhaps another server's
    for (let i = 0; i < 5; i++) setTimeout(askTime, 100 * i);
    const clear = () => { if (socket.readyState === 1) say(""); };
    ask("settings").then((answer) => answer.json()).then(showSettings).then(clear, (e) => say(e.message));
  };
  socket.onclose = () => {
    if (!opened) fetch("stats").then((answer) => answer.ok ? null : answer.json()).then((j) => j && say(j.error), () => null);
    else if (!heard) say("closed at once: too many watch, perhaps");
    setTimeout(connect, retry);
    retry = Math.min(retry * 2, 4000);
  };
}

if (location.search) history.replaceState(null, "", location.pathname); // a token stays out of sight
setInterval(askTime, 1000);
connect();
