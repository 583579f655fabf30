import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

// The vendor, in a process of its own: answers every chat completion after so many milliseconds.
const [delay = '0'] = process.argv.slice(2);
const answer = JSON.stringify({
  id: 'chatcmpl-bench',
  object: 'chat.completion',
  created: 1_790_000_000,
  model: 'gpt-5.4-mini',
  choices: [
    {
      index: 0,
      message: { role: 'assistant', content: 'It tells who changed what, and when.' },
      finish_reason: 'stop',
    },
  ],
  usage: { prompt_tokens: 24, completion_tokens: 9, total_tokens: 33 },
});
const head = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(answer) };
const server = createServer((request, response) => {
  const send = () => response.writeHead(200, head).end(answer);
  request.resume().once('end', () => (delay === '0' ? send() : setTimeout(send, Number(delay))));
});
server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`));
