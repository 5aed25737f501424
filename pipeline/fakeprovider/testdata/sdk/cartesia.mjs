import Cartesia from '@cartesia/cartesia-js';
import { answer, base64, check, equal, https, part, said, until } from './lib.mjs';

const client = new Cartesia({ apiKey: 'key', baseURL: https });
const voice = { mode: 'id', id: 'voice' };

await part('TTS socket', async () => {
  const socket = await client.tts.websocket();
  const errors = [];
  socket.on('error', (e) => errors.push(e));
  const options = { model_id: 'sonic-3', voice, add_timestamps: true, output_format: { container: 'raw', encoding: 'pcm_s16le', sample_rate: 16000 } };
  const context = socket.context(options);
  await context.push({ transcript: 'one ' });
  await context.push({ transcript: 'two ', flush: true });
  await context.push({ transcript: 'three' });
  await context.no_more_inputs();
  const chunks = [], types = [], words = [];
  for await (const m of context.receive({ timeout: 5000 })) {
    types.push(m.type);
    if (m.type === 'chunk') chunks.push(m.audio ?? base64(m.data));
    if (m.type === 'timestamps') words.push(...m.word_timestamps.words);
    if (m.type === 'flush_done') check(m.flush_done && m.flush_id > 0, 'flush_done', m);
    check(m.context_id === context.contextId, 'context_id', m);
  }
  said('cartesia', '16000.s16', chunks);
  equal(words, answer.split(' '), 'timestamps');
  check(types.includes('flush_done') && types.at(-1) === 'done', 'types', types);
  const floats = [];
  const two = socket.context({ ...options, output_format: { container: 'raw', encoding: 'pcm_f32le', sample_rate: 16000 } });
  for await (const m of two.generate({ transcript: answer })) if (m.type === 'chunk') floats.push(m.audio ?? base64(m.data));
  said('cartesia-float', '16000.f32', floats);
  const three = socket.context(options);
  await three.push({ transcript: answer });
  await three.cancel();
  const bad = socket.context({ ...options, output_format: { container: 'raw', encoding: 'mp3', sample_rate: 16000 } });
  await bad.push({ transcript: 'one' });
  await until(() => errors.length, 'an error', errors);
  check(/invalid_output_format/.test(errors[0].message), 'error', errors);
  socket.close();
});
