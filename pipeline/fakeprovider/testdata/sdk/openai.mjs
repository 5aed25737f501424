import OpenAI, { toFile } from 'openai';
import { base64, answer, check, equal, http, part, said, sentence, wav } from './lib.mjs';

const client = new OpenAI({ apiKey: 'key', baseURL: `${http}/v1`, maxRetries: 0 });
const model = 'gpt-5.4-mini';
const parameters = { type: 'object', properties: { order: { type: 'string' } }, required: ['order'], additionalProperties: false };
const tools = [{ type: 'function', function: { name: 'look_up', description: 'finds an order', parameters } }];
const hello = [{ role: 'system', content: 'be brief' }, { role: 'user', content: 'hello' }];
const asks = [{ role: 'user', content: 'look up 42' }];
const reply = 'you said hello';

await part('chat, raw stream', async () => {
  let text = '', usage, role;
  const finishes = [];
  const stream = await client.chat.completions.create({ model, messages: hello, stream: true, stream_options: { include_usage: true } });
  for await (const chunk of stream) {
    check(chunk.id && chunk.object === 'chat.completion.chunk' && chunk.model === model, 'fields of a chunk', chunk);
    usage = chunk.usage ?? usage;
    const choice = chunk.choices[0];
    role ??= choice?.delta.role;
    text += choice?.delta.content ?? '';
    if (choice?.finish_reason) finishes.push(choice.finish_reason);
  }
  equal([role, text, finishes], ['assistant', reply, ['stop']], 'role, text and finish_reason');
  check(usage?.total_tokens > 0, 'usage', usage);
});

await part('chat.completions.stream()', async () => {
  const done = await client.chat.completions.stream({ model, messages: hello }).finalChatCompletion();
  equal([done.choices[0].message.content, done.choices[0].finish_reason], [reply, 'stop'], 'answer');
});

await part('chat.completions.stream() with tools', async () => {
  const done = await client.chat.completions.stream({ model, messages: asks, tools, tool_choice: 'auto', parallel_tool_calls: false }).finalChatCompletion();
  const message = done.choices[0].message;
  equal(done.choices[0].finish_reason, 'tool_calls', 'finish_reason');
  equal([message.tool_calls[0].function.name, JSON.parse(message.tool_calls[0].function.arguments)], ['look_up', { order: '42' }], 'call');
  const result = { role: 'tool', tool_call_id: message.tool_calls[0].id, content: 'late' };
  const next = await client.chat.completions.stream({ model, messages: [...asks, message, result], tools }).finalChatCompletion();
  equal(next.choices[0].message.content, 'you said late', 'answer after the result');
});

await part('chat, content parts', async () => {
  const messages = [{ role: 'user', content: [{ type: 'text', text: 'hel' }, { type: 'text', text: 'lo' }] }];
  const done = await client.chat.completions.stream({ model, messages }).finalChatCompletion();
  equal(done.choices[0].message.content, reply, 'answer');
});

await part('chat without stream', async () => {
  const done = await client.chat.completions.create({ model, messages: hello });
  equal([done.object, done.choices[0].message.content, done.choices[0].finish_reason], ['chat.completion', reply, 'stop'], 'answer');
  const call = await client.chat.completions.create({ model, messages: asks, tools, tool_choice: 'required' });
  equal([call.choices[0].message.tool_calls[0].function.name, call.choices[0].finish_reason], ['look_up', 'tool_calls'], 'call');
  const forced = { type: 'function', function: { name: 'look_up' } };
  const one = await client.chat.completions.create({ model, messages: hello, tools, tool_choice: forced });
  equal(one.choices[0].message.tool_calls[0].function.name, 'look_up', 'forced call');
  let ran = '';
  const runner = client.chat.completions.runTools({
    model, messages: asks,
    tools: [{ type: 'function', function: { name: 'look_up', parse: JSON.parse, parameters, function: (a) => { ran = a.order; return 'late'; } } }],
  });
  equal([await runner.finalContent(), ran], ['you said late', '42'], 'runTools');
});

await part('chat, a refusal', async () => {
  const bad = client.chat.completions.create({ model: 'gpt-6-luna', messages: hello, tools, stream: true });
  const err = await bad.then(() => null, (e) => e);
  check(err instanceof OpenAI.BadRequestError && /reasoning_effort/.test(err.message) && err.type === 'invalid_request_error', 'error', err);
});

await part('responses, stream', async () => {
  const types = [];
  let text = '';
  const stream = client.responses.stream({ model, instructions: 'be brief', input: 'hello' });
  for await (const e of stream) {
    types.push(e.type);
    if (e.type === 'response.output_text.delta') text += e.delta;
  }
  const done = await stream.finalResponse();
  equal([text, done.output_text, done.status], [reply, reply, 'completed'], 'answer');
  check(done.usage.total_tokens > 0, 'usage', done.usage);
  for (const t of ['response.created', 'response.in_progress', 'response.output_item.added', 'response.content_part.added',
    'response.output_text.done', 'response.content_part.done', 'response.output_item.done', 'response.completed']) check(types.includes(t), t, types);
});

await part('responses, tools', async () => {
  const flat = [{ type: 'function', name: 'look_up', parameters, strict: true }];
  const input = [{ role: 'user', content: [{ type: 'input_text', text: 'look up 42' }] }];
  const done = await client.responses.stream({ model, input, tools: flat, tool_choice: 'auto' }).finalResponse();
  const call = done.output.find((o) => o.type === 'function_call');
  equal([call?.name, call?.parsed_arguments ?? JSON.parse(call?.arguments)], ['look_up', { order: '42' }], 'call');
  const result = { type: 'function_call_output', call_id: call.call_id, output: 'late' };
  const next = await client.responses.stream({ model, input: [...input, ...done.output, result], tools: flat }).finalResponse();
  equal(next.output_text, 'you said late', 'answer after the result');
});

await part('responses without stream', async () => {
  const done = await client.responses.create({ model, input: 'hello' });
  equal([done.output_text, done.status, done.object], [reply, 'completed', 'response'], 'answer');
});

await part('audio.speech', async () => {
  const ask = { model: 'gpt-4o-mini-tts', voice: 'alloy', input: answer };
  const raw = await client.audio.speech.create({ ...ask, response_format: 'pcm' });
  said('openai', '24000.s16', [Buffer.from(await raw.arrayBuffer())]);
  const riff = Buffer.from(await (await client.audio.speech.create({ ...ask, response_format: 'wav' })).arrayBuffer());
  equal(riff.subarray(0, 4).toString(), 'RIFF', 'WAV');
  const events = (await (await client.audio.speech.create({ ...ask, response_format: 'pcm', stream_format: 'sse' })).text())
    .split('\n\n').filter(Boolean).map((e) => JSON.parse(e.replace(/^data: /, '')));
  check(events.at(-1).type === 'speech.audio.done', 'last event', events.at(-1));
  said('openai-sse', '24000.s16', events.slice(0, -1).map((e) => base64(e.audio)));
});

await part('audio.transcriptions', async () => {
  const file = await toFile(wav, 'a.wav', { type: 'audio/wav' });
  equal((await client.audio.transcriptions.create({ model: 'whisper-1', file })).text, sentence, 'text');
  const all = await client.audio.transcriptions.create({ model: 'whisper-1', file, response_format: 'verbose_json', timestamp_granularities: ['word'] });
  equal(all.words.map((w) => w.word), sentence.split(' '), 'words');
});
