import { connect } from 'node:net';

export interface RawAnswer {
  status: number;
  headers: Record<string, string>;
  body: string;
}

/** Sends bytes as they are, which no HTTP client would, and reads the first answer. */
export async function sendRaw(baseUrl: string, text: string): Promise<RawAnswer> {
  const { hostname, port } = new URL(baseUrl);
  const socket = connect(Number(port), hostname);
  let received = '';
  try {
    return await new Promise((resolve, reject) => {
      socket.setEncoding('latin1');
      socket.on('error', reject);
      socket.on('close', () => reject(new Error(`closed after ${JSON.stringify(received)}`)));
      socket.on('data', (chunk: string) => {
        received += chunk;
        const answer = parse(received);
        if (answer !== undefined) resolve(answer);
      });
      socket.write(text, 'latin1');
    });
  } finally {
    socket.destroy();
  }
}

function parse(received: string): RawAnswer | undefined {
  const [head = '', ...rest] = received.split('\r\n\r\n');
  const [statusLine = '', ...lines] = head.split('\r\n');
  const headers = Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]),
  );
  const body = rest.join('\r\n\r\n');
  if (body.length < Number(headers['content-length'] ?? Number.POSITIVE_INFINITY)) return undefined;
  return { status: Number(statusLine.split(' ')[1]), headers, body };
}
