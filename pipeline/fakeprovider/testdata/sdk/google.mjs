import { GoogleGenAI, Type } from '@google/genai';
import { check, equal, http, part } from './lib.mjs';

const ai = new GoogleGenAI({ apiKey: 'key', httpOptions: { baseUrl: http } });
const model = 'gemini-3-flash';
const tools = [{ functionDeclarations: [{
  name: 'look_up', description: 'finds an order', parameters: { type: Type.OBJECT, properties: { order: { type: Type.STRING } } },
}] }];

await part('generateContentStream', async () => {
  let text = '', last;
  const config = { systemInstruction: 'be brief', temperature: 0.2 };
  for await (const c of await ai.models.generateContentStream({ model, contents: 'hello', config })) text += (last = c).text ?? '';
  equal([text, last.candidates[0].finishReason], ['you said hello', 'STOP'], 'answer');
  check(last.usageMetadata.totalTokenCount > 0, 'usage', last.usageMetadata);
});

await part('generateContentStream with a tool', async () => {
  const chat = ai.chats.create({ model, config: { tools } }); // keeps signatures in its history
  const calls = [];
  for await (const c of await chat.sendMessageStream({ message: 'look up 42' })) calls.push(...(c.functionCalls ?? []));
  equal([calls[0]?.name, calls[0]?.args], ['look_up', { order: '42' }], 'call');
  let text = '';
  const result = { functionResponse: { id: calls[0].id, name: 'look_up', response: { output: 'late' } } };
  for await (const c of await chat.sendMessageStream({ message: [result] })) text += c.text ?? '';
  equal(text, 'you said late', 'answer after the result');
});

await part('generateContent', async () => {
  equal((await ai.models.generateContent({ model, contents: 'hello' })).text, 'you said hello', 'answer');
});
