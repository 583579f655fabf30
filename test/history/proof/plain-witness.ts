import { createHash, type KeyObject, sign, verify } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

const sha256 = (...parts: Uint8Array[]) => createHash('sha256').update(Buffer.concat(parts)).digest();
const node = (left: Buffer, right: Buffer) => sha256(Buffer.from([1]), left, right);

/**
 * A witness written from the pages tlog-witness, tlog-cosignature and signed-note of C2SP alone. It shares no code with
 * Annals. It keeps every checkpoint that it was sent with a right signature, whatever it answered.
 */
export async function startPlainWitness({
  name,
  publicKey,
  privateKey,
  logs,
}: {
  readonly name: string;
  readonly publicKey: KeyObject;
  readonly privateKey: KeyObject;
  readonly logs: ReadonlyMap<string, KeyObject>;
}) {
  const seen: { origin: string; size: number; root: string }[] = [];
  const newest = new Map<string, { size: number; root: Buffer }>();

  function answer(body: string): [status: number, text: string] {
    const [head = '', ...rest] = body.split('\n\n');
    const note = rest.join('\n\n');
    const [old = '', ...proof] = head.split('\n');
    const [origin = '', sizeText = '', rootText = ''] = note.split('\n');
    const key = logs.get(origin);
    if (key === undefined) return [404, ''];
    const text = `${origin}\n${sizeText}\n${rootText}\n`;
    const line = note.split('\n').find((one) => one.startsWith(`— ${origin} `)) ?? '';
    const signature = Buffer.from(line.split(' ')[2] ?? '', 'base64').subarray(4);
    if (!verify(null, Buffer.from(text), key, signature)) return [403, ''];
    const [oldSize, size, root] = [Number(old.slice(4)), Number(sizeText), Buffer.from(rootText, 'base64')];
    seen.push({ origin, size, root: rootText });
    if (oldSize > size) return [400, ''];
    const before = newest.get(origin) ?? { size: 0, root: sha256() };
    if (oldSize !== before.size) return [409, `${before.size}\n`];
    if (
      !follows(
        before,
        { size, root },
        proof.map((hash) => Buffer.from(hash, 'base64')),
      )
    )
      return [422, ''];
    newest.set(origin, { size, root });
    const seconds = Math.floor(Date.now() / 1000);
    const time = Buffer.alloc(8);
    time.writeBigUInt64BE(BigInt(seconds));
    const raw = publicKey.export({ format: 'der', type: 'spki' }).subarray(-32);
    const id = sha256(Buffer.from(`${name}\n\x04`), raw).subarray(0, 4);
    const signed = sign(null, Buffer.from(`cosignature/v1\ntime ${seconds}\n${text}`), privateKey);
    return [200, `— ${name} ${Buffer.concat([id, time, signed]).toString('base64')}\n`];
  }

  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const [status, text] = request.url === '/add-checkpoint' ? answer(Buffer.concat(chunks).toString()) : [404, ''];
    response.writeHead(status, status === 409 ? { 'content-type': 'text/x.tlog.size' } : {}).end(text);
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    /** The checkpoints it was sent, in order. */
    seen,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
    },
  };
}

/** RFC 9162, section 2.1.4.2, in its own words. */
function follows(old: { size: number; root: Buffer }, now: { size: number; root: Buffer }, proof: Buffer[]): boolean {
  if (old.size === 0) return proof.length === 0;
  if (old.size === now.size) return proof.length === 0 && old.root.equals(now.root);
  const path = Math.log2(old.size) % 1 === 0 ? [old.root, ...proof] : proof;
  let [fn, sn] = [old.size - 1, now.size - 1];
  while (fn % 2 === 1) [fn, sn] = [Math.floor(fn / 2), Math.floor(sn / 2)];
  const [first, ...others] = path;
  if (first === undefined) return false;
  let [fr, sr] = [first, first];
  for (const hash of others) {
    if (sn === 0) return false;
    if (fn % 2 === 1 || fn === sn) {
      [fr, sr] = [node(hash, fr), node(hash, sr)];
      while (fn % 2 === 0 && fn !== 0) [fn, sn] = [Math.floor(fn / 2), Math.floor(sn / 2)];
    } else {
      sr = node(sr, hash);
    }
    [fn, sn] = [Math.floor(fn / 2), Math.floor(sn / 2)];
  }
  return fr.equals(old.root) && sr.equals(now.root) && sn === 0;
}
