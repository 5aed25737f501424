// Functions for all scripts: addresses, audio in real time, checks and a time limit.
import { isDeepStrictEqual, inspect } from 'node:util';
import { readFileSync, writeFileSync } from 'node:fs';
import WebSocket from 'ws';

globalThis.WebSocket ??= WebSocket; // some SDKs need it, and Node 20 has none

const { FAKE_ADDR, FAKE_TLS_ADDR } = process.env;
export const http = `http://${FAKE_ADDR}`;
export const ws = `ws://${FAKE_ADDR}`;
export const https = `https://${FAKE_TLS_ADDR}`;
export const wss = `wss://${FAKE_TLS_ADDR}`;

export const rate = 16000; // Hz, of pcm
export const pcm = readFileSync('sentence.pcm'); // the sentence and 1.5 s of silence
export const speech = pcm.subarray(0, pcm.length - 1.4 * 2 * rate); // the sentence alone
export const wav = readFileSync('sentence.wav');
export const ulaw = readFileSync('sentence.ulaw'); // 8 kHz
export const sentence = 'hello there friend';
export const answer = 'one two three'; // text that the voices must speak

let step = 'start';
process.on('unhandledRejection', fail);
process.on('uncaughtException', fail);
setTimeout(() => fail(new Error('time limit of 40 s')), 40_000).unref();

export function fail(err) {
  console.error(`FAIL in ${step}: ${err?.stack ?? inspect(err)}`);
  process.exit(1);
}

// part runs a part of a script and names it.
export async function part(name, run) {
  step = name;
  await within(20_000, run(), name);
  console.log(`ok ${name}`);
}

export function check(ok, what, seen) {
  if (!ok) throw new Error(`${what}; saw ${show(seen)}`);
}

// show returns the end of the collected messages.
const show = (seen) => inspect(seen, { depth: 7, breakLength: Infinity, compact: true }).slice(-1500);

export function equal(got, want, what) {
  if (!isDeepStrictEqual(got, want)) throw new Error(`${what}: ${inspect(got)}, want ${inspect(want)}`);
}

export const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

export function within(ms, promise, what) {
  let timer;
  const limit = new Promise((_, no) => { timer = setTimeout(() => no(new Error(`${what}: nothing within ${ms} ms`)), ms); });
  return Promise.race([promise, limit]).finally(() => clearTimeout(timer));
}

// until waits until find returns something.
export async function until(find, what, seen) {
  for (let i = 0; i < 1000; i++) {
    const found = find();
    if (found) return found;
    await sleep(10);
  }
  throw new Error(`${what}: not within 10 s; saw ${show(seen)}`);
}

// sendSpeech passes the sentence at once, so that no silence ends the turn.
export function sendSpeech(send) {
  for (let at = 0; at < speech.length; at += 3200) send(speech.subarray(at, at + 3200));
}

// stream passes the sentence in real time to send, 100 ms at a time.
export async function stream(send) {
  const size = rate / 5;
  for (let at = 0; at < pcm.length; at += size) {
    send(pcm.subarray(at, at + size));
    await sleep(100);
  }
}

// said stores the speech of a voice, which the test decodes. format is a rate in Hz and an
// encoding: 24000.s16, 8000.mulaw or 16000.f32.
export function said(name, format, chunks) {
  const sound = Buffer.concat(chunks);
  check(sound.length > 0, `${name}: no sound`, chunks.length);
  writeFileSync(`${name}.${format}.said`, sound);
}

export const base64 = (text) => Buffer.from(text, 'base64');
