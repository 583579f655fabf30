import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

// The vendor, in a process of its own: answers every chat completion after so many milliseconds, and streams of it in
// chunks 2 ms apart, each with the time it is sent, in milliseconds since 1970.
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
const chunks = 20;

async function stream(response: ServerResponse): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  for (let chunk = 0; chunk < chunks; chunk += 1) {
    const finish = chunk === chunks - 1 ? 'stop' : null;
    const choices = [{ index: 0, delta: { content: 'who changed what ' }, finish_reason: finish }];
    const sentAt = performance.timeOrigin + performance.now();
    response.write(
      `data: ${JSON.stringify({ id: 'chatcmpl-bench', object: 'chat.completion.chunk', sentAt, choices })}\n\n`,
    );
    await sleep(2);
  }
  response.end('data: [DONE]\n\n');
}

const server = createServer((request, response) => {
  const send = () => response.writeHead(200, head).end(answer);
  let body = '';
  request.setEncoding('utf8').on('data', (part: string) => {
    body += part;
  });
  request.once('end', () => {
    if (body.includes('"stream":true')) void stream(response);
    else if (delay === '0') send();
    else setTimeout(send, Number(delay));
  });
});
server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`));
