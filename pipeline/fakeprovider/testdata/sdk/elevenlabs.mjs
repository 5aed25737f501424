// The SDK has the messages of streaming speech but no socket for them, so this script opens the sockets.
import WebSocket from 'ws';
import elevenlabs from '@elevenlabs/elevenlabs-js';
import types from '@elevenlabs/elevenlabs-js/serialization/index.js';
import { answer, base64, check, equal, http, part, said, until, ws } from './lib.mjs';

const { ElevenLabsClient } = elevenlabs;

async function open(path) {
  const socket = new WebSocket(`${ws}/v1/text-to-speech/voice/${path}?model_id=eleven_flash_v2_5&output_format=pcm_16000`, { headers: { 'xi-api-key': 'key' } });
  const all = [], closes = [];
  socket.on('message', (b) => all.push(JSON.parse(b)));
  socket.on('close', (code) => closes.push(code));
  await new Promise((ok, no) => socket.on('open', ok).on('error', no));
  const send = (type, m) => socket.send(JSON.stringify(type.jsonOrThrow(m)));
  return { socket, all, closes, send };
}

const parse = (type, m) => type.parseOrThrow(m, { unrecognizedObjectKeys: 'passthrough' });

await part('messages of stream-input', async () => {
  const { all, closes, send } = await open('stream-input');
  send(types.InitializeConnection, { text: ' ', voiceSettings: { stability: 0.5 }, generationConfig: { chunkLengthSchedule: [50] } });
  send(types.SendText, { text: 'one two ' });
  send(types.SendText, { text: 'three ', flush: true });
  send(types.CloseConnection, { text: '' });
  await until(() => closes.length, 'close', all);
  const sound = all.filter((m) => m.audio).map((m) => parse(types.AudioOutput, m));
  said('elevenlabs', '16000.s16', sound.map((m) => base64(m.audio)));
  check(sound[0].alignment.chars.length > 0 && sound[0].normalizedAlignment, 'alignment', sound[0]);
  equal(parse(types.FinalOutput, all.at(-1)).isFinal, true, 'isFinal');
  equal(closes, [1000], 'close codes');
});

await part('messages of multi-stream-input', async () => {
  const { all, closes, send } = await open('multi-stream-input');
  send(types.InitializeConnectionMulti, { text: ' ', contextId: 'a' });
  send(types.SendTextMulti, { text: 'one ', contextId: 'a' });
  send(types.InitialiseContext, { text: ' ', contextId: 'b' });
  send(types.SendTextMulti, { text: 'two three ', contextId: 'a' });
  send(types.FlushContext, { contextId: 'a', flush: true });
  send(types.KeepContextAlive, { text: '', contextId: 'b' });
  send(types.CloseContext, { contextId: 'a', closeContext: true });
  const final = await until(() => all.find((m) => m.isFinal), 'isFinal', all);
  equal(parse(types.FinalOutputMulti, final).contextId, 'a', 'final context');
  const sound = all.filter((m) => m.audio).map((m) => parse(types.AudioOutputMulti, m));
  equal([...new Set(sound.map((m) => m.contextId))], ['a'], 'contexts with sound');
  said('elevenlabs-multi', '16000.s16', sound.map((m) => base64(m.audio)));
  send(types.CloseSocket, { closeSocket: true });
  await until(() => closes.length, 'close', all);
  equal(closes, [1000], 'close codes');
});

await part('textToSpeech.stream and convert', async () => {
  const client = new ElevenLabsClient({ apiKey: 'key', baseUrl: http, maxRetries: 0 });
  for (const method of ['stream', 'convert']) {
    const chunks = [];
    const sound = await client.textToSpeech[method]('voice', { text: answer, modelId: 'eleven_flash_v2_5', outputFormat: 'pcm_16000' });
    for await (const b of sound) chunks.push(Buffer.from(b));
    said(`elevenlabs-${method}`, '16000.s16', chunks);
  }
  const mp3 = await client.textToSpeech.stream('voice', { text: answer }).then(() => null, (e) => e);
  check(mp3?.statusCode === 400 && /cannot be made/.test(JSON.stringify(mp3.body)), 'refusal of MP3', mp3);
});
