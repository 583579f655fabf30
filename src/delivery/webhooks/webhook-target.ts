import {
  createHash,
  createHmac,
  createPrivateKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  randomUUID,
  sign,
} from 'node:crypto';
import { mask } from '../../core/sealing.ts';
import type { DeliveredChange } from '../changes.ts';
import { type GuardedHttp, userAgent } from '../targets/guarded-http.ts';
import { faultsOfTargetHeaders, faultsOfUrl, WebhookTarget } from '../targets/schemas.ts';
import type { DeliveryResult, Sending, ShownRequest, StoredKey, Target, TargetMembers } from '../targets/target.ts';
import { webhookBody } from './webhook-body.ts';

/** Symmetric with a shared secret, or asymmetric with a key pair. */
type Signing = 'hmac' | 'ed25519';

/** A key of a webhook (Standard Webhooks 1.0.0, "Signature scheme"). */
export interface SigningKey {
  readonly signing: Signing;
  /** `whsec_` and 32 bytes, or `whsk_` and the seed of 32 bytes, in base64. Annals stores it sealed. */
  readonly secret: string;
}

/** The receiver's key: the secret of `hmac`, the public key of `ed25519` (`whpk_` and 32 bytes in base64). */
type ReceiverKey = { readonly secret: string } | { readonly publicKey: string };

const hmacPrefix = 'whsec_';
const privatePrefix = 'whsk_';
const publicPrefix = 'whpk_';
const keyBytes = 32;
// The DER prefix of an Ed25519 key (RFC 8410).
const privateHeader = Buffer.from('302e020100300506032b657004220420', 'hex');
const publicHeaderBytes = 12;

export function makeSigningKey(signing: Signing): { key: SigningKey; receiver: ReceiverKey } {
  if (signing === 'hmac') {
    const secret = hmacPrefix + randomBytes(keyBytes).toString('base64');
    return { key: { signing, secret }, receiver: { secret } };
  }
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  const seed = privateKey.export({ format: 'der', type: 'pkcs8' }).subarray(privateHeader.length);
  const point = publicKey.export({ format: 'der', type: 'spki' }).subarray(publicHeaderBytes);
  return {
    key: { signing, secret: privatePrefix + seed.toString('base64') },
    receiver: { publicKey: publicPrefix + point.toString('base64') },
  };
}

interface SignedMessage {
  readonly id: string;
  /** Seconds since 1970. */
  readonly timestamp: number;
  readonly body: string;
}

/** The header `webhook-signature`: a signature for each key, the newest first. */
export function signaturesOf({ id, timestamp, body }: SignedMessage, keys: readonly SigningKey[]): string {
  const content = Buffer.from(`${id}.${timestamp}.${body}`);
  return keys.map((key) => signatureOf(content, key)).join(' ');
}

function signatureOf(content: Buffer, { signing, secret }: SigningKey): string {
  if (signing === 'ed25519') return `v1a,${sign(null, content, privateKeyOf(secret)).toString('base64')}`;
  return `v1,${createHmac('sha256', bytesOf(secret, hmacPrefix)).update(content).digest('base64')}`;
}

function privateKeyOf(secret: string): KeyObject {
  const key = Buffer.concat([privateHeader, bytesOf(secret, privatePrefix)]);
  return createPrivateKey({ key, format: 'der', type: 'pkcs8' });
}

function bytesOf(secret: string, prefix: string): Buffer {
  const bytes = secret.startsWith(prefix) ? Buffer.from(secret.slice(prefix.length), 'base64') : Buffer.alloc(0);
  if (bytes.length !== keyBytes) throw new Error('not a key of a webhook');
  return bytes;
}

interface WebhookMembers extends TargetMembers {
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signing?: Signing;
  readonly concurrency?: number;
}

/** Calls a URL for each change (Standard Webhooks 1.0.0). */
export function createWebhookTarget({ http, now }: { http: GuardedHttp; now: () => number }): Target {
  async function post(sending: Sending, { id, body, at }: Message): Promise<DeliveryResult> {
    const { tenant, signal } = sending;
    const { url, headers } = sending.target as WebhookMembers;
    const timestamp = Math.floor(at / 1_000);
    const keys = sending.keys.filter(({ until }) => until === undefined || until > at).map(signingKeyOf);
    const { result } = await http.send(tenant, {
      url,
      headers: {
        ...headers,
        ...openHeaders({ id, at }),
        'webhook-signature': signaturesOf({ id, timestamp, body }, keys),
      },
      body,
      signal,
    });
    return result;
  }

  return {
    type: 'webhook',
    schema: WebhookTarget,
    secrets: ['headers'],
    defaults: { signing: 'hmac' },
    maxAge: 'P1D',
    hostOf: ({ url }) => URL.parse(String(url))?.host ?? '',
    check: (tenant, target) => [
      ...faultsOfUrl('target.url', String(target.url), http, tenant),
      ...faultsOfTargetHeaders((target as WebhookMembers).headers),
    ],
    makeKey({ signing }) {
      const { key, receiver } = makeSigningKey(signing === 'ed25519' ? 'ed25519' : 'hmac');
      return { key, shown: { ...receiver } };
    },
    async test(sending) {
      const message = { ...sampleOf(sending.tenant, now()), id: `test_${randomUUID()}` };
      return { ...(await post(sending, message)), request: shown(sending.target, message) };
    },
    async deliverOne(sending, change) {
      return await post(sending, { ...(await messageOf(sending, change)), at: now() });
    },
    async showRequest(sending, { at, change }) {
      const message = change === undefined ? sampleOf(sending.tenant, at) : await messageOf(sending, change);
      return shown(sending.target, { ...message, at });
    },
  };
}

interface Message {
  readonly id: string;
  readonly body: string;
  /** Milliseconds. */
  readonly at: number;
}

async function messageOf(
  { tenant, hide }: Pick<Sending, 'tenant' | 'hide'>,
  { type, at, ref, text, identity }: DeliveredChange,
): Promise<Omit<Message, 'at'>> {
  const body = await webhookBody({ type, at, ref, text }, { tenant, hide });
  return { id: webhookIdOf(tenant, { at, identity }), body };
}

/** Its id is random, and not stored. */
function sampleOf(tenant: string, at: number): Message {
  const data = { test: true, message: 'A sample of Annals. Nothing has changed.', tenant };
  return { id: 'test_…', at, body: JSON.stringify({ type: 'test', timestamp: new Date(at).toISOString(), data }) };
}

/** Headers without secrets. */
function openHeaders({ id, at }: Omit<Message, 'body'>) {
  return {
    'content-type': 'application/json',
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(at / 1_000)),
  };
}

function shown(target: TargetMembers, { body, ...message }: Message): ShownRequest {
  const { url, headers = {} } = target as WebhookMembers;
  const masked = Object.fromEntries(Object.keys(headers).map((name) => [name, mask]));
  return {
    method: 'POST',
    url,
    headers: { 'user-agent': userAgent, ...masked, ...openHeaders(message), 'webhook-signature': mask },
    body,
  };
}

/** Derived from the entry alone, so it is stable across retries, replays and restores. */
export function webhookIdOf(tenant: string, { at, identity }: Pick<DeliveredChange, 'at' | 'identity'>): string {
  return `chg_${createHash('sha256').update(`${tenant}\n${at}\n${identity}`).digest('base64url').slice(0, 32)}`;
}

function signingKeyOf({ signing, secret }: StoredKey): SigningKey {
  return { signing: signing === 'ed25519' ? 'ed25519' : 'hmac', secret };
}
