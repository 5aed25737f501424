import { DeepgramClient } from '@deepgram/sdk';
import { answer, check, equal, part, rate, said, sendSpeech, sentence, stream, ulaw, until, ws } from './lib.mjs';

const client = new DeepgramClient({ apiKey: 'key', baseUrl: ws });

// open connects and collects the messages.
async function open(socket) {
  const all = [], closes = [];
  socket.on('message', (m) => all.push(m));
  socket.on('close', (e) => closes.push(e.code));
  socket.on('error', (e) => all.push({ type: 'error', e }));
  socket.connect();
  await socket.waitForOpen();
  return { all, closes };
}

const text = (m) => m.channel.alternatives[0].transcript;

await part('listen v1', async () => {
  const socket = await client.listen.v1.connect({
    model: 'nova-3', language: 'en', encoding: 'linear16', sample_rate: rate, interim_results: 'true',
    endpointing: 300, utterance_end_ms: 1000, vad_events: 'true', reconnectAttempts: 0,
  });
  const { all, closes } = await open(socket);
  socket.sendKeepAlive({ type: 'KeepAlive' });
  await stream((b) => socket.sendMedia(b));
  const results = (want) => all.find((m) => m.type === 'Results' && want(m));
  const end = await until(() => results((m) => m.speech_final), 'speech_final', all);
  check(end.is_final && text(end) === sentence, 'the end of the turn', end);
  equal(end.channel.alternatives[0].words.map((w) => w.word), sentence.split(' '), 'words');
  check(results((m) => !m.is_final && text(m)), 'interim results', all);
  check(end.metadata.request_id && end.metadata.model_info.name === 'nova-3', 'metadata of results', end);
  await until(() => all.find((m) => m.type === 'SpeechStarted'), 'SpeechStarted', all);
  await until(() => all.find((m) => m.type === 'UtteranceEnd' && m.last_word_end > 0), 'UtteranceEnd', all);
  sendSpeech((b) => socket.sendMedia(b));
  socket.sendFinalize({ type: 'Finalize' });
  await until(() => results((m) => m.from_finalize && m.is_final && text(m)), 'from_finalize', all);
  socket.sendCloseStream({ type: 'CloseStream' });
  await until(() => closes.length, 'close', all);
  const metadata = all.at(-1);
  check(metadata.type === 'Metadata' && metadata.request_id && metadata.duration > 1 && metadata.channels === 1, 'Metadata at the end', metadata);
  equal(closes, [1000], 'close codes');
  socket.close();
});

await part('listen v1, µ-law', async () => {
  const socket = await client.listen.v1.connect({ model: 'nova-3', encoding: 'mulaw', sample_rate: 8000, endpointing: 'false', reconnectAttempts: 0 });
  const { all, closes } = await open(socket);
  for (let at = 0; at < ulaw.length; at += 800) socket.sendMedia(ulaw.subarray(at, at + 800));
  socket.sendFinalize({ type: 'Finalize' });
  const end = await until(() => all.find((m) => m.from_finalize), 'from_finalize', all);
  equal(text(end), sentence, 'text');
  socket.sendCloseStream({ type: 'CloseStream' });
  await until(() => closes.length, 'close', all);
  socket.close();
});

await part('listen v2 (Flux)', async () => {
  const socket = await client.listen.v2.connect({
    model: 'flux-general-en', encoding: 'linear16', sample_rate: rate, eager_eot_threshold: 0.4, eot_timeout_ms: 700, reconnectAttempts: 0,
  });
  const { all, closes } = await open(socket);
  await stream((b) => socket.sendMedia(b));
  const turn = (event) => all.find((m) => m.type === 'TurnInfo' && m.event === event);
  const end = await until(() => turn('EndOfTurn'), 'EndOfTurn', all);
  equal(end.transcript, sentence, 'transcript');
  equal(end.words.map((w) => w.word), sentence.split(' '), 'words');
  check(all[0].type === 'Connected' && all[0].request_id, 'Connected first', all[0]);
  check(turn('StartOfTurn') && turn('Update'), 'StartOfTurn and Update', all);
  equal(end.trigger, 'timeout', 'trigger');
  const eager = turn('EagerEndOfTurn');
  check(eager?.transcript === sentence && all.indexOf(eager) < all.indexOf(end), 'EagerEndOfTurn', all);
  const sequence = all.map((m) => m.sequence_id).filter((n) => n !== undefined);
  check(sequence.every((n, i) => i === 0 || n > sequence[i - 1]), 'sequence_id rises', sequence);
  socket.sendConfigure({ type: 'Configure', thresholds: { eot_timeout_ms: 3000 } });
  const done = await until(() => all.find((m) => m.type === 'ConfigureSuccess'), 'ConfigureSuccess', all);
  equal(done.thresholds.eot_timeout_ms, 3000, 'configured eot_timeout_ms');
  sendSpeech((b) => socket.sendMedia(b));
  socket.sendForceEndTurn({ type: 'ForceEndTurn' });
  await until(() => all.filter((m) => m.event === 'EndOfTurn').length === 2, 'ForceEndTurn', all);
  socket.sendCloseStream({ type: 'CloseStream' });
  await until(() => closes.length, 'close', all);
  equal(closes, [1000], 'close codes');
  socket.close();
});

const speak = (format, encoding, sample_rate) => part(`speak v1, ${encoding}`, async () => {
  const socket = await client.speak.v1.connect({ model: 'aura-2-thalia-en', encoding, sample_rate, reconnectAttempts: 0 });
  const { all, closes } = await open(socket);
  socket.sendText({ type: 'Speak', text: answer });
  socket.sendFlush({ type: 'Flush' });
  await until(() => all.find((m) => m.type === 'Flushed'), 'Flushed', all);
  const chunks = [];
  for (const m of all.filter((m) => !m.type || m instanceof Blob)) {
    chunks.push(Buffer.from(m instanceof Blob ? await m.arrayBuffer() : m));
  }
  said(`deepgram-${encoding}`, format, chunks);
  check(all.find((m) => m.type === 'Metadata')?.request_id, 'Metadata', all.map((m) => m.type));
  socket.sendClear({ type: 'Clear' });
  await until(() => all.find((m) => m.type === 'Cleared'), 'Cleared', all.map((m) => m.type));
  socket.sendClose({ type: 'Close' });
  await until(() => closes.length, 'close', closes);
  equal(closes, [1000], 'close codes');
  socket.close();
});

await speak('24000.s16', 'linear16', 24000);
await speak('8000.mulaw', 'mulaw', 8000);
