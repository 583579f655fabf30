import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { GuardedHttp } from '../targets/guarded-http.ts';
import { faultsOfTargetHeaders, faultsOfUrl, type HttpMembers, HttpTarget } from '../targets/schemas.ts';
import type { Sending, TargetMembers } from '../targets/target.ts';
import { type BatchResult, type BatchTarget, resultOfTest } from './batch-target.ts';
import { joinedTexts, mediaTypeOf, textsOf } from './batch-text.ts';
import { sampleChange } from './sample-change.ts';

const compress = promisify(gzip);

export interface HttpOptions {
  http: GuardedHttp;
  baseUrl: string | undefined;
  now: () => number;
}

/** Sends batches with POST and an idempotency key. */
export function createHttpTarget({ http, baseUrl, now }: HttpOptions): BatchTarget {
  const membersOf = ({ target }: Pick<Sending, 'target'>) => target as TargetMembers & HttpMembers;

  async function post(sending: Sending, text: string, headers: Record<string, string>): Promise<BatchResult> {
    const { url, format = 'annals', encoding = 'ndjson', gzip: isPacked = false, headers: custom } = membersOf(sending);
    const { result } = await http.send(sending.tenant, {
      url,
      headers: {
        ...custom,
        'content-type': mediaTypeOf(format, encoding),
        ...(isPacked ? { 'content-encoding': 'gzip' } : {}),
        ...headers,
      },
      body: isPacked ? await compress(text) : text,
      signal: sending.signal,
    });
    return result;
  }

  return {
    type: 'http',
    schema: HttpTarget,
    secrets: ['headers'],
    maxAge: undefined,
    receivesOwnCreation: true,
    hostOf: (target) => new URL((target as TargetMembers & HttpMembers).url).host,
    check: (tenant, target) => [
      ...faultsOfUrl('target.url', String(target.url), http, tenant),
      ...faultsOfTargetHeaders((target as TargetMembers & HttpMembers).headers),
    ],

    textsOf: (sending, changes) =>
      textsOf(changes, { ...sending, format: membersOf(sending).format ?? 'annals', baseUrl }),
    join: (sending, texts) => joinedTexts(texts, membersOf(sending).encoding ?? 'ndjson'),

    async deliverBatch(sending, { text, key, first, last }) {
      if (text === '') return { outcome: 'delivered', isAbsent: true };
      return await post(sending, text, {
        'idempotency-key': key,
        'annals-first': String(first),
        'annals-last': String(last),
      });
    },

    async test(sending) {
      const text = this.join(sending, this.textsOf(sending, [sampleChange(now())]));
      return resultOfTest(await post(sending, text, { 'annals-test': 'true' }));
    },
  };
}
