import { createHash, createHmac } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { SignatureV4 } from '@smithy/signature-v4';

export interface KeptObject {
  body: Buffer;
  contentType: string | undefined;
  /** Without `x-amz-meta-`. */
  metadata: Record<string, string>;
}

/**
 * A strict S3 server for one bucket on loopback: an unsigned or wrongly signed request is refused, `If-None-Match: *`
 * as Amazon describes it. What no real server of the tests can do.
 */
export interface S3Server {
  url: string;
  region: string;
  bucket: string;
  accessKeyId: string;
  secretAccessKey: string;
  objects: Map<string, KeptObject>;
  /** `PUT key status` of each request, in their order. */
  requests: string[];
  /** Answers the next requests with these, and stores nothing. */
  refuse(...answers: { status: number; code: string }[]): void;
  /** Does the work when the next object has been stored, before the answer to it. */
  onceStored(work: () => void | Promise<void>): void;
  close(): Promise<void>;
}

const conditional = 'if-none-match';

/** `isUnconditional`: refuses every condition, as OpenStack Swift does. */
export async function startS3Server({ isUnconditional = false } = {}): Promise<S3Server> {
  const settings = { region: 'eu-central-1', bucket: 'history', accessKeyId: 'AKIATEST', secretAccessKey: 's3cr3t/+=' };
  const objects = new Map<string, KeptObject>();
  const requests: string[] = [];
  const refusals: { status: number; code: string }[] = [];
  let hook: (() => void | Promise<void>) | undefined;

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await buffer(request);
    const path = decodeURIComponent(new URL(request.url ?? '', 'http://s3').pathname);
    const key = path.slice(`/${settings.bucket}/`.length);
    const end = (status: number, code?: string, headers: Record<string, string> = {}) => {
      requests.push(`${request.method} ${key} ${status}`);
      response.writeHead(status, headers);
      response.end(code === undefined || request.method === 'HEAD' ? undefined : `<Error><Code>${code}</Code></Error>`);
    };
    const fault = await signatureFault(request, body, settings);
    if (fault !== undefined) return end(403, fault);
    const refusal = refusals.shift();
    if (refusal !== undefined) return end(refusal.status, refusal.code);
    if (!path.startsWith(`/${settings.bucket}/`)) return end(404, 'NoSuchBucket');
    const known = objects.get(key);
    if (request.method === 'HEAD') {
      if (known === undefined) return end(404);
      const metadata = Object.entries(known.metadata).map(([name, value]) => [`x-amz-meta-${name}`, value]);
      return end(200, undefined, { 'content-length': String(known.body.length), ...Object.fromEntries(metadata) });
    }
    if (request.method !== 'PUT') return end(405, 'MethodNotAllowed');
    const condition = request.headers[conditional];
    if (condition !== undefined && (isUnconditional || condition !== '*')) return end(501, 'NotImplemented');
    if (condition === '*' && known !== undefined) return end(412, 'PreconditionFailed');
    const metadata = Object.entries(request.headers).filter(([name]) => name.startsWith('x-amz-meta-'));
    objects.set(key, {
      body,
      contentType: request.headers['content-type'],
      metadata: Object.fromEntries(metadata.map(([name, value]) => [name.slice('x-amz-meta-'.length), String(value)])),
    });
    const work = hook;
    hook = undefined;
    await work?.();
    end(200);
  }

  const server = createServer((request, response) => {
    answer(request, response).catch(() => response.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    ...settings,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    objects,
    requests,
    refuse: (...answers) => void refusals.push(...answers),
    onceStored: (work) => {
      hook = work;
    },
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

/**
 * What is wrong with the signature: `@smithy/signature-v4` signs the request as it came, and both have to be the same.
 */
async function signatureFault(
  request: IncomingMessage,
  body: Buffer,
  settings: { region: string; accessKeyId: string; secretAccessKey: string },
): Promise<string | undefined> {
  const { authorization, 'x-amz-date': date, 'x-amz-content-sha256': sha256 } = request.headers;
  const [, names] = /SignedHeaders=([^,]+)/.exec(authorization ?? '') ?? [];
  if (names === undefined || typeof date !== 'string') return 'AccessDenied';
  if (sha256 !== createHash('sha256').update(body).digest('hex')) return 'XAmzContentSHA256Mismatch';
  const signed = names.split(';');
  const unsigned = Object.keys(request.headers).filter((name) => /^x-amz-|^if-none-match$/.test(name));
  if (unsigned.some((name) => !signed.includes(name))) return 'AccessDenied';
  const url = new URL(request.url ?? '', 'http://s3');
  const judge = new SignatureV4({
    credentials: settings,
    region: settings.region,
    service: 's3',
    sha256: Hash,
    uriEscapePath: false,
    applyChecksum: false,
  });
  const { headers } = await judge.sign(
    {
      method: request.method ?? '',
      protocol: 'http:',
      hostname: url.hostname,
      path: url.pathname,
      query: {},
      headers: Object.fromEntries(signed.map((name) => [name, String(request.headers[name])])),
    },
    { signingDate: dateOf(date), signableHeaders: new Set(signed) },
  );
  return headers.authorization === authorization ? undefined : 'SignatureDoesNotMatch';
}

/** `20261123T180000Z` */
function dateOf(text: string): Date {
  return new Date(text.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3T$4:$5:$6Z'));
}

/** SHA-256, and HMAC with it where there is a secret, as the judge wants them. */
class Hash {
  readonly #hash: ReturnType<typeof createHash | typeof createHmac>;

  constructor(secret?: string | ArrayBuffer | ArrayBufferView) {
    this.#hash = secret === undefined ? createHash('sha256') : createHmac('sha256', bytesOf(secret));
  }

  update(part: string | ArrayBuffer | ArrayBufferView): void {
    this.#hash.update(bytesOf(part));
  }

  async digest(): Promise<Uint8Array> {
    return this.#hash.digest();
  }

  reset(): void {
    throw new Error('not used');
  }
}

function bytesOf(source: string | ArrayBuffer | ArrayBufferView): Buffer {
  if (typeof source === 'string') return Buffer.from(source);
  return ArrayBuffer.isView(source)
    ? Buffer.from(source.buffer, source.byteOffset, source.byteLength)
    : Buffer.from(source);
}
