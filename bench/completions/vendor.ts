import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';

// The vendor of the benchmark: answers every chat completion after so many milliseconds, in a process of its own. A streamed answer
// comes word by word, each in a turn of the event loop.
const [delay = '0'] = process.argv.slice(2);
const text = 'It tells who changed what, and when.';
const usage = { prompt_tokens: 24, completion_tokens: 9, total_tokens: 33 };
const answer = JSON.stringify({
  id: 'chatcmpl-bench',
  object: 'chat.completion',
  created: 1_790_000_000,
  model: 'gpt-5.4-mini',
  choices: [
    {
      index: 0,
      message: { role: 'assistant', content: text },
      finish_reason: 'stop',
    },
  ],
  usage,
});
const head = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(answer) };

const chunk = (part: object) =>
  `data: ${JSON.stringify({ id: 'chatcmpl-bench', object: 'chat.completion.chunk', created: 1_790_000_000, model: 'gpt-5.4-mini', ...part })}\n\n`;
const delta = (content: object, finish_reason: string | null = null) =>
  chunk({ choices: [{ index: 0, delta: content, finish_reason }] });
const events = [
  delta({ role: 'assistant', content: '' }),
  ...text.split(/(?<= )/).map((content) => delta({ content })),
  delta({}, 'stop'),
  chunk({ choices: [], usage }),
  'data: [DONE]\n\n',
];

function stream(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const left = [...events];
  const next = () => {
    const event = left.shift();
    if (event === undefined) response.end();
    else response.write(event, () => setImmediate(next));
  };
  next();
}

const server = createServer(async (request, response) => {
  const body = (await json(request)) as { stream?: boolean };
  const send = () => (body.stream === true ? stream(response) : response.writeHead(200, head).end(answer));
  if (delay === '0') send();
  else setTimeout(send, Number(delay));
});
server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`));
