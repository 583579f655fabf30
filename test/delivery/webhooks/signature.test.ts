import { execFile } from 'node:child_process';
import { createPublicKey } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { verifyWebhook, type WebhookError } from '@annals/client';
import { Webhook as StandardWebhook } from 'standardwebhooks';
import { Webhook as SvixWebhook } from 'svix';
import { describe, expect, test } from 'vitest';
import { makeSigningKey, type SigningKey, signaturesOf } from '../../../src/delivery/webhooks/webhook-target.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const now = Date.parse('2026-09-01T12:00:00Z');
const timestamp = now / 1_000;
const id = 'msg_2b7e151628aed2a6abf7158809cf4f3c';
const body =
  '{"type":"change.update","timestamp":"2026-09-01T11:59:59.123Z","data":{"price":19.900000000000000001,"name":"Ærø 🎈"}}';

function headersOf(keys: readonly SigningKey[], sent = { id, timestamp, body }): Record<string, string> {
  return {
    'webhook-id': sent.id,
    'webhook-timestamp': String(sent.timestamp),
    'webhook-signature': signaturesOf(sent, keys),
  };
}

function secretOf(receiver: ReturnType<typeof makeSigningKey>['receiver']): string {
  return 'secret' in receiver ? receiver.secret : receiver.publicKey;
}

describe('a webhook signed with a secret', () => {
  const { key, receiver } = makeSigningKey('hmac');
  // Both compare the timestamp with the clock of the machine.
  const current = { id, timestamp: Math.floor(Date.now() / 1_000), body };

  test.each([
    ['standardwebhooks', () => new StandardWebhook(secretOf(receiver))],
    ['svix', () => new SvixWebhook(secretOf(receiver))],
  ])('is verified by the package %s, and not when a character has changed', (_, make) => {
    const headers = headersOf([key], current);
    expect(() => make().verify(body, headers)).not.toThrow();
    expect(() => make().verify(body.replace('19.9', '19.8'), headers)).toThrow();
    expect(() => make().verify(body, { ...headers, 'webhook-id': `${id}x` })).toThrow();
  });

  test('has a key of 32 bytes, another one each time', () => {
    const secret = secretOf(receiver);
    expect(secret).toMatch(/^whsec_/);
    expect(Buffer.from(secret.slice(6), 'base64')).toHaveLength(32);
    expect(secretOf(makeSigningKey('hmac').receiver)).not.toBe(secret);
  });
});

test('a webhook signed with a private key is verified by openssl', async () => {
  const { key, receiver } = makeSigningKey('ed25519');
  const publicKey = secretOf(receiver);
  expect(publicKey).toMatch(/^whpk_/);
  const [, signature = ''] = signaturesOf({ id, timestamp, body }, [key]).split('v1a,');
  const folder = temporaryFolder();
  try {
    const der = Buffer.concat([
      Buffer.from('302a300506032b6570032100', 'hex'),
      Buffer.from(publicKey.slice(5), 'base64'),
    ]);
    await writeFile(
      join(folder, 'key.pem'),
      createPublicKey({ key: der, format: 'der', type: 'spki' }).export({ format: 'pem', type: 'spki' }),
    );
    await writeFile(join(folder, 'content'), `${id}.${timestamp}.${body}`);
    await writeFile(join(folder, 'signature'), Buffer.from(signature, 'base64'));
    const verify = () =>
      promisify(execFile)(
        'openssl',
        ['pkeyutl', '-verify', '-pubin', '-inkey', 'key.pem', '-rawin', '-in', 'content', '-sigfile', 'signature'],
        { cwd: folder },
      );
    expect((await verify()).stdout).toContain('Signature Verified Successfully');
    await writeFile(join(folder, 'content'), `${id}.${timestamp}.${body} `);
    await expect(verify()).rejects.toThrow();
  } finally {
  }
});

describe.each(['hmac', 'ed25519'] as const)('verifyWebhook with %s', (signing) => {
  const { key, receiver } = makeSigningKey(signing);
  const foreign = makeSigningKey(signing);
  const headers = headersOf([key]);
  const verify = (
    changed: {
      body?: string | Uint8Array;
      headers?: Record<string, string>;
      keys?: string | string[];
      now?: number;
    } = {},
  ) =>
    verifyWebhook(changed.body ?? body, changed.headers ?? headers, changed.keys ?? secretOf(receiver), {
      now: changed.now ?? now,
    });
  const faultOf = (changed: Parameters<typeof verify>[0]) =>
    verify(changed).then(
      () => 'verified',
      (error: WebhookError) => error.fault,
    );

  test('returns the id, the time of the attempt and the text with every digit', async () => {
    const expected = { id, attemptedAt: new Date(now), text: body };
    expect(await verify()).toEqual(expected);
    expect(await verify({ body: Buffer.from(body) })).toEqual(expected);
    expect(await verifyWebhook(body, new Headers(headers), [secretOf(receiver)], { now })).toEqual(expected);
  });

  test('refuses an altered body, header, key or version', async () => {
    expect(await faultOf({ body: body.replace('19.9', '19.8') })).toBe('signature');
    expect(await faultOf({ headers: { ...headers, 'webhook-id': `${id}0` } })).toBe('signature');
    expect(await faultOf({ headers: { ...headers, 'webhook-timestamp': String(timestamp + 1) } })).toBe('signature');
    expect(await faultOf({ headers: { ...headers, 'webhook-signature': 'v1,' } })).toBe('signature');
    expect(await faultOf({ keys: secretOf(foreign.receiver) })).toBe('signature');
    const version = signing === 'hmac' ? 'v1a' : 'v1';
    const renamed = (headers['webhook-signature'] ?? '').replace(/^v1a?/, version);
    expect(await faultOf({ headers: { ...headers, 'webhook-signature': renamed } })).toBe('signature');
  });

  test('accepts an attempt of five minutes ago or ahead, and none beyond', async () => {
    expect(await faultOf({ now: now + 300_000 })).toBe('verified');
    expect(await faultOf({ now: now + 300_001 })).toBe('timestamp');
    expect(await faultOf({ now: now - 300_000 })).toBe('verified');
    expect(await faultOf({ now: now - 300_001 })).toBe('timestamp');
  });

  test('accepts either key while keys change, whichever side has both', async () => {
    const both = headersOf([foreign.key, key]);
    expect(await faultOf({ headers: both })).toBe('verified');
    expect(await faultOf({ headers: both, keys: secretOf(foreign.receiver) })).toBe('verified');
    expect(await faultOf({ keys: [secretOf(foreign.receiver), secretOf(receiver)] })).toBe('verified');
  });

  test.each(['webhook-id', 'webhook-timestamp', 'webhook-signature'])(
    'names the header %s where it is missing',
    async (name) => {
      const { [name]: _, ...rest } = headers;
      await expect(verify({ headers: rest })).rejects.toMatchObject({
        fault: 'headers',
        message: expect.stringContaining(name),
      });
    },
  );

  test('refuses a key of another form instead of every request', async () => {
    await expect(verify({ keys: secretOf(receiver).slice(6) })).rejects.toThrow(TypeError);
  });
});
