// Translates lines with Marian itself, as npm's package @browsermt/bergamot-translator has it, with a beam of 1.
//
//   npm install @browsermt/bergamot-translator@0.4.9
//   node marian_translate.mjs PACKAGE MODEL.bin VOCAB.spm PRECISION [LEX.bin [TARGET.spm]] < lines
//
// prints a JSON list of texts, with the scores of their sentences. Lines are translated one by one: those of a batch share a shortlist.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Worker } from "node:worker_threads";

const [folder, model, vocab, precision, shortlist, target] = process.argv.slice(2);
writeFileSync(join(folder, "worker", "package.json"), '{"type": "commonjs"}'); // its scripts are no modules
const worker = new Worker(join(folder, "worker", "translator-worker.js"));
const pending = new Map();
worker.on("message", ({ id, result, error }) => {
  const { resolve, reject } = pending.get(id);
  if (error) reject(new Error(error.message));
  else resolve(result);
});
const call = (name, ...args) =>
  new Promise((resolve, reject) => {
    pending.set(pending.size + 1, { resolve, reject });
    worker.postMessage({ id: pending.size, name, args });
  });
const bytes = (path) => new Uint8Array(readFileSync(path)).buffer;

const pair = { from: "xx", to: "yy" };
await call("initialize", { cacheSize: 0 });
await call("loadTranslationModel", pair, {
  model: bytes(model),
  vocabs: [vocab, ...(target ? [target] : [])].map(bytes),
  shortlist: shortlist ? bytes(shortlist) : new ArrayBuffer(0),
  config: { "gemm-precision": precision, "skip-cost": "false" },
});
const lines = readFileSync(0, "utf-8").split("\n").filter((line) => line);
const texts = [];
for (const text of lines) {
  const [result] = await call("translate", { models: [pair], texts: [{ text, html: true, qualityScores: true }] });
  texts.push(result.target.text);
}
console.log(JSON.stringify(texts));
await worker.terminate();
