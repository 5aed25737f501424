import { AssemblyAI } from 'assemblyai';
import { check, equal, part, rate, sendSpeech, sentence, stream, until, wss } from './lib.mjs';

await part('StreamingTranscriber', async () => {
  const client = new AssemblyAI({ apiKey: 'key' });
  const socket = client.streaming.transcriber({
    websocketBaseUrl: `${wss}/v3/ws`, sampleRate: rate, encoding: 'pcm_s16le', speechModel: 'universal-streaming-english',
    formatTurns: true, minTurnSilence: 160, maxTurnSilence: 400, sessionHeartbeat: true, maxConnectionRetries: 0,
  });
  const turns = [], errors = [], closes = [], beats = [];
  socket.on('turn', (t) => turns.push(t));
  socket.on('error', (e) => errors.push(e));
  socket.on('close', (code) => closes.push(code));
  socket.on('heartbeat', (b) => beats.push(b));
  const begin = await socket.connect();
  check(begin.id && begin.expires_at > 0, 'Begin', begin);
  await stream((b) => socket.sendAudio(b));
  const end = await until(() => turns.find((t) => t.end_of_turn), 'end_of_turn', turns);
  equal([end.transcript, end.words.map((w) => w.text), end.words.every((w) => w.word_is_final)], [sentence, sentence.split(' '), true], 'turn');
  check(turns.some((t) => !t.end_of_turn && t.words.length), 'partial turns', turns);
  const formatted = await until(() => turns.find((t) => t.turn_is_formatted), 'formatted turn', turns);
  equal([formatted.end_of_turn, formatted.turn_order], [true, end.turn_order], 'formatted turn');
  check(beats[0]?.total_audio_received_ms > 0, 'heartbeat', beats);
  sendSpeech((b) => socket.sendAudio(b));
  socket.forceEndpoint();
  await until(() => turns.some((t) => t.turn_order === end.turn_order + 1 && t.end_of_turn), 'forceEndpoint', turns);
  const at = Date.now();
  await socket.close(); // returns at Termination and then ignores all events; a broken connection is reported before
  check(Date.now() - at < 2000, 'Termination', Date.now() - at);
  equal([closes, errors], [[], []], 'close codes and errors');
});

await part('StreamingTranscriber, a refusal', async () => {
  const client = new AssemblyAI({ apiKey: 'key' });
  const socket = client.streaming.transcriber({ websocketBaseUrl: `${wss}/v3/ws`, sampleRate: rate, speechModel: 'unknown', maxConnectionRetries: 0 });
  const errors = [];
  socket.on('error', (e) => errors.push(e.message));
  const err = await socket.connect().then(() => null, (e) => e);
  await until(() => /speech_model/.test(`${err?.message} ${errors}`), 'the error', [err, errors]);
});
