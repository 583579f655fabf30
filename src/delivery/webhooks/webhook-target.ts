import { createHash, randomUUID } from 'node:crypto';
import type { DeliveredChange } from '../changes.ts';
import type { GuardedHttp } from '../targets/guarded-http.ts';
import { faultsOfTargetHeaders } from '../targets/headers.ts';
import type { DeliveryResult, Sending, StoredKey, Target, TargetMembers } from '../targets/target.ts';
import { faultsOfUrl } from '../targets/url.ts';
import { makeSigningKey, type Signing, type SigningKey, signaturesOf } from './signature.ts';
import { webhookBody } from './webhook-body.ts';
import { WebhookTarget } from './webhook-schema.ts';

interface WebhookMembers extends TargetMembers {
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signing?: Signing;
  readonly concurrency?: number;
}

/** Calls a URL for each change (Standard Webhooks 1.0.0). */
export function createWebhookTarget({ http, now }: { http: GuardedHttp; now: () => number }): Target {
  async function post(sending: Sending, id: string, body: string): Promise<DeliveryResult> {
    const { tenant, signal } = sending;
    const { url, headers } = sending.target as WebhookMembers;
    const at = now();
    const timestamp = Math.floor(at / 1_000);
    const keys = sending.keys.filter(({ until }) => until === undefined || until > at).map(signingKeyOf);
    const { result } = await http.send(tenant, {
      url,
      headers: {
        ...headers,
        'content-type': 'application/json',
        'webhook-id': id,
        'webhook-timestamp': String(timestamp),
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
    test(sending) {
      const timestamp = new Date(now()).toISOString();
      const data = { test: true, message: 'A sample of Annals. Nothing has changed.', tenant: sending.tenant };
      return post(sending, `test_${randomUUID()}`, JSON.stringify({ type: 'test', timestamp, data }));
    },
    async deliverOne(sending, { type, at, ref, text, identity }) {
      const { tenant, hide } = sending;
      const body = await webhookBody({ type, at, ref, text }, { tenant, hide });
      return await post(sending, webhookIdOf(tenant, { at, identity }), body);
    },
  };
}

/** Derived from the entry alone, so it is stable across retries, replays and restores. */
export function webhookIdOf(tenant: string, { at, identity }: Pick<DeliveredChange, 'at' | 'identity'>): string {
  return `chg_${createHash('sha256').update(`${tenant}\n${at}\n${identity}`).digest('base64url').slice(0, 32)}`;
}

function signingKeyOf({ signing, secret }: StoredKey): SigningKey {
  return { signing: signing === 'ed25519' ? 'ed25519' : 'hmac', secret };
}
