import Anthropic from '@anthropic-ai/sdk';
import { check, equal, http, part } from './lib.mjs';

const client = new Anthropic({ apiKey: 'key', baseURL: http, maxRetries: 0 });
const base = { model: 'claude-haiku-4-5', max_tokens: 100, system: 'be brief' };
const tools = [{ name: 'look_up', description: 'finds an order', input_schema: { type: 'object', properties: { order: { type: 'string' } } } }];

await part('messages.stream', async () => {
  let text = '';
  const done = await client.messages.stream({ ...base, messages: [{ role: 'user', content: 'hello' }] }).on('text', (t) => { text += t; }).finalMessage();
  equal([text, done.content[0].text, done.stop_reason], ['you said hello', 'you said hello', 'end_turn'], 'answer');
  check(done.usage.input_tokens > 0 && done.usage.output_tokens > 0, 'usage', done.usage);
});

await part('messages.stream with a tool', async () => {
  const messages = [{ role: 'user', content: [{ type: 'text', text: 'look up 42' }] }];
  const done = await client.messages.stream({ ...base, messages, tools, tool_choice: { type: 'auto' } }).finalMessage();
  const call = done.content.find((b) => b.type === 'tool_use');
  equal([done.stop_reason, call?.name, call?.input], ['tool_use', 'look_up', { order: '42' }], 'call');
  messages.push({ role: 'assistant', content: done.content });
  messages.push({ role: 'user', content: [{ type: 'tool_result', tool_use_id: call.id, content: 'late' }] });
  const next = await client.messages.stream({ ...base, messages, tools }).finalMessage();
  equal(next.content[0].text, 'you said late', 'answer after the result');
});

await part('messages.create', async () => {
  const done = await client.messages.create({ ...base, messages: [{ role: 'user', content: 'hello' }] });
  equal([done.type, done.content[0].text, done.stop_reason], ['message', 'you said hello', 'end_turn'], 'answer');
});
