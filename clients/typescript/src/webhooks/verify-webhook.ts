/** Why a request is not a webhook of Annals that arrives now. */
export type WebhookFault = 'headers' | 'timestamp' | 'signature';

/** A request that is not a webhook of Annals, or an old one. Answer it with 400. */
export class WebhookError extends Error {
  override readonly name = 'WebhookError';
  readonly fault: WebhookFault;

  constructor(fault: WebhookFault, message: string) {
    super(message);
    this.fault = fault;
  }
}

/** A request that Annals has signed. */
export interface Webhook {
  /** The same for each attempt to deliver the same change: a receiver that keeps these ids handles each change once. */
  readonly id: string;
  /** When this attempt was made. */
  readonly attemptedAt: Date;
  /** The JSON text. `JSON.parse` reads it; `parseJson` of `@annals/client/json` keeps each digit of its numbers. */
  readonly text: string;
}

export interface VerifyOptions {
  /** The time to compare with, in milliseconds since 1970. Default: now. */
  readonly now?: number;
  /** Seconds that an attempt may be older or newer. Default: 300. */
  readonly tolerance?: number;
}

/**
 * Checks that Annals sent a request (Standard Webhooks 1.0.0), with WebCrypto: in Node, Deno, Bun, workers and
 * browsers. Throws {@link WebhookError} where it did not, and TypeError where a key has no valid form.
 *
 * @param body the bytes of the request as they came, or their text: a parsed body that is written again has another
 * signature
 * @param keys the secret (`whsec_…`) or the public key (`whpk_…`) of the subscription; during a change of keys the old
 * and the new one
 *
 * @example
 * const { text } = await verifyWebhook(await request.text(), request.headers, process.env.WEBHOOK_SECRET);
 * const { type, data } = JSON.parse(text);
 */
export async function verifyWebhook(
  body: string | Uint8Array,
  headers: Headers | Readonly<Record<string, string | readonly string[] | undefined>>,
  keys: string | readonly string[],
  { now = Date.now(), tolerance = 300 }: VerifyOptions = {},
): Promise<Webhook> {
  const id = headerOf(headers, 'webhook-id');
  const timestamp = headerOf(headers, 'webhook-timestamp');
  const signatures = headerOf(headers, 'webhook-signature');
  const checks = await Promise.all((typeof keys === 'string' ? [keys] : keys).map(checkOf));
  if (!/^\d{1,15}$/.test(timestamp)) throw new WebhookError('headers', 'webhook-timestamp is not a number of seconds.');
  const attemptedAt = Number(timestamp) * 1_000;
  if (Math.abs(now - attemptedAt) > tolerance * 1_000) {
    throw new WebhookError('timestamp', `webhook-timestamp is more than ${tolerance} seconds away from now.`);
  }
  const content = concat(new TextEncoder().encode(`${id}.${timestamp}.`), bytesOfBody(body));
  for (const signature of signatures.split(' ')) {
    for (const isFrom of checks) {
      if (await isFrom(content, signature)) {
        return { id, attemptedAt: new Date(attemptedAt), text: new TextDecoder().decode(bytesOfBody(body)) };
      }
    }
  }
  throw new WebhookError('signature', 'No signature of the request is from a key that was given.');
}

function headerOf(headers: Parameters<typeof verifyWebhook>[1], name: string): string {
  const value = headers instanceof Headers ? headers.get(name) : headers[name];
  if (typeof value !== 'string' || value === '') throw new WebhookError('headers', `The header ${name} is missing.`);
  return value;
}

type Bytes = Uint8Array<ArrayBuffer>;
type Check = (content: Bytes, signature: string) => Promise<boolean>;

/** WebCrypto compares in constant time. */
async function checkOf(key: string): Promise<Check> {
  const [, prefix, text = ''] = /^(whsec_|whpk_)(.+)$/.exec(key) ?? [];
  const bytes = bytesOfBase64(text);
  if (prefix === undefined || bytes === undefined)
    throw new TypeError('A key begins with whsec_ or whpk_ and goes on in base64.');
  const [algorithm, version] =
    prefix === 'whpk_' ? ([{ name: 'Ed25519' }, 'v1a'] as const) : ([{ name: 'HMAC', hash: 'SHA-256' }, 'v1'] as const);
  const imported = await crypto.subtle.importKey('raw', bytes, algorithm, false, ['verify']);
  return async (content, signature) => {
    const [of, value = ''] = signature.split(',');
    const signed = of === version ? bytesOfBase64(value) : undefined;
    return signed !== undefined && (await crypto.subtle.verify(algorithm.name, imported, signed, content));
  };
}

function bytesOfBody(body: string | Uint8Array): Bytes {
  return typeof body === 'string' ? new TextEncoder().encode(body) : new Uint8Array(body);
}

function bytesOfBase64(text: string): Bytes | undefined {
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  } catch {
    return undefined;
  }
}

function concat(one: Uint8Array, other: Uint8Array): Bytes {
  const both = new Uint8Array(one.length + other.length);
  both.set(one);
  both.set(other, one.length);
  return both;
}
