import { SonioxNodeClient } from '@soniox/node';
import { answer, check, equal, part, rate, said, sendSpeech, sentence, stream, until, ws } from './lib.mjs';

const client = new SonioxNodeClient({
  api_key: 'key', realtime: { ws_base_url: `${ws}/transcribe-websocket`, tts_ws_url: `${ws}/tts-websocket` },
});

await part('realtime.stt', async () => {
  const session = client.realtime.stt({
    model: 'stt-rt-v5', audio_format: 'pcm_s16le', sample_rate: rate, num_channels: 1, language_hints: ['en'],
    enable_endpoint_detection: true, max_endpoint_delay_ms: 500,
  });
  const results = [], ends = [], errors = [];
  let interim = false;
  session.on('result', (r) => { results.push(r); interim ||= r.tokens.some((t) => !t.is_final); });
  session.on('endpoint', () => ends.push('endpoint'));
  session.on('finalized', () => ends.push('finalized'));
  session.on('finished', () => ends.push('finished'));
  session.on('error', (e) => errors.push(e));
  await session.connect();
  await stream((b) => session.sendAudio(b));
  await until(() => ends.includes('endpoint'), 'endpoint', results);
  const heard = () => results.flatMap((r) => r.tokens).filter((t) => t.is_final && !t.text.startsWith('<')).map((t) => t.text).join('').trim();
  equal(heard(), sentence, 'final tokens');
  check(interim, 'interim tokens', results);
  sendSpeech((b) => session.sendAudio(b));
  session.finalize();
  await until(() => ends.includes('finalized'), 'finalized', results);
  await session.finish();
  equal([ends.at(-1), errors], ['finished', []], 'end and errors');
});

await part('realtime.tts', async () => {
  const config = { model: 'tts-rt-v2', voice: 'Adrian', language: 'en', audio_format: 'pcm_s16le', sample_rate: 24000, return_timestamps: true };
  const one = await client.realtime.tts(config);
  const chunks = [], characters = [];
  one.on('audio', (b, times) => { chunks.push(Buffer.from(b)); characters.push(...(times?.characters ?? [])); });
  const ended = new Promise((ok, no) => { one.on('terminated', ok); one.on('error', no); });
  for (const word of answer.split(' ')) one.sendText(`${word} `);
  one.finish();
  await ended;
  one.close();
  said('soniox', '24000.s16', chunks);
  equal(characters.join('').trim(), answer, 'characters');
  const conn = await client.realtime.tts.multiStream();
  const two = await conn.stream(config), more = [];
  two.sendText(answer, { end: true });
  for await (const b of two) more.push(Buffer.from(b));
  said('soniox-multi', '24000.s16', more);
  (await conn.stream(config)).cancel();
  conn.close();
});
