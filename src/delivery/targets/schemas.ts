import { type Static, type TStringOptions, Type } from 'typebox';
import type { ErrorDetail } from '../../core/errors.ts';
import { faultsOfHeaders, tenantHeaders } from '../../providers/tenant-headers.ts';
import type { GuardedHttp } from './guarded-http.ts';
import type { TargetMembers } from './target.ts';

/** A host name or an IPv6 address. */
const host = '(?:[^\\u0000-\\u0020\\u007f"#%/:<>?@[\\\\\\]^`{|}]+|\\[[0-9A-Fa-f:.]+\\])(?::[0-9]{1,5})?';

/** The URL of a target. `rest`: the pattern after the host. */
function targetUrl(rest: string, options: TStringOptions = {}) {
  return Type.String({
    maxLength: 2_000,
    pattern: `^https?://${host}${rest}$`,
    'x-must': 'be a URL that begins with https://, without user, password and fragment',
    ...options,
  });
}

/** Faults of a target's URL that its schema cannot express. The resolved address is checked on each connection. */
export function faultsOfUrl(
  field: string,
  text: string,
  http: Pick<GuardedHttp, 'faultOf'>,
  tenant: string,
): ErrorDetail[] {
  const url = URL.parse(text);
  const message = url === null ? 'must be a URL' : http.faultOf(tenant, url);
  return message === undefined ? [] : [{ field, message }];
}

/** Additional headers of a subscription's requests. */
const TargetHeaders = tenantHeaders('TargetHeaders', '`webhook-…`');

export function faultsOfTargetHeaders(headers: Readonly<Record<string, string>> = {}): ErrorDetail[] {
  return faultsOfHeaders(headers, { field: 'target.headers', own: /^(?:idempotency-key$|webhook-)/ });
}

export const defaultConcurrency = 4;
export const maxConcurrency = 8;

export const WebhookTarget = Type.Object(
  {
    type: Type.Literal('webhook'),
    url: targetUrl('(?:[/?][^#]*)?', { description: 'https. Annals calls it with POST, and follows no redirect.' }),
    headers: Type.Optional(TargetHeaders),
    signing: Type.Optional(
      Type.Enum(['hmac', 'ed25519'], {
        type: 'string',
        description:
          'Default: `hmac`, with a secret. `ed25519`: with a private key that Annals keeps. It cannot be changed later.',
      }),
    ),
    concurrency: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: maxConcurrency,
        description: 'Calls at once, of different documents. Default: 4. With 1 all changes come one after another.',
      }),
    ),
    publicKey: Type.Optional(Type.String({ readOnly: true, description: 'Of `ed25519`: `whpk_…`.' })),
  },
  { $id: 'WebhookTarget', additionalProperties: false },
);

/** The limits of a batch: defaults, and what a subscription may set. */
export const batchLimits = {
  maxChanges: { default: 1_000, max: 10_000 },
  // Bytes before compression.
  maxBytes: { default: 1_048_576, min: 1_024, max: 4_194_304 },
  maxSeconds: { default: 10, max: 3_600 },
} as const;

const { maxChanges, maxBytes, maxSeconds } = batchLimits;

/** The bounds of a target's batches. */
export function limitsOf(target: TargetMembers): { maxChanges: number; maxBytes: number; maxSeconds: number } {
  const limits = target as Partial<Record<keyof typeof batchLimits, number>>;
  return {
    maxChanges: limits.maxChanges ?? maxChanges.default,
    maxBytes: limits.maxBytes ?? maxBytes.default,
    maxSeconds: limits.maxSeconds ?? maxSeconds.default,
  };
}

const visible = 'have visible ASCII characters alone';

/** Members of every batch target. */
const batchMembers = {
  format: Type.Optional(
    Type.Enum(['annals', 'cloudevents'], {
      type: 'string',
      description: 'How a change is written: as the feed has it, or as a CloudEvent (1.0).',
      default: 'annals',
    }),
  ),
  maxChanges: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: maxChanges.max,
      default: maxChanges.default,
      description: 'Changes of a batch.',
    }),
  ),
  maxBytes: Type.Optional(
    Type.Integer({
      minimum: maxBytes.min,
      maximum: maxBytes.max,
      default: maxBytes.default,
      description: 'Bytes of a batch before compression. A longer change is a batch of its own.',
    }),
  ),
  maxSeconds: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: maxSeconds.max,
      default: maxSeconds.default,
      description: 'A batch ends so many seconds after its first change was recorded.',
    }),
  ),
} as const;

export const HttpTarget = Type.Object(
  {
    type: Type.Literal('http'),
    url: targetUrl('(?:[/?][^#]*)?'),
    headers: Type.Optional(TargetHeaders),
    encoding: Type.Optional(
      Type.Enum(['ndjson', 'json'], {
        type: 'string',
        description: 'One change a line, or one array.',
        default: 'ndjson',
      }),
    ),
    gzip: Type.Optional(Type.Boolean({ description: 'Whether bodies are compressed.', default: false })),
    ...batchMembers,
  },
  { $id: 'HttpTarget', additionalProperties: false },
);
export type HttpMembers = Omit<Static<typeof HttpTarget>, 'headers'> & { headers?: Readonly<Record<string, string>> };

export const S3Target = Type.Object(
  {
    type: Type.Literal('s3'),
    endpoint: Type.Optional(
      targetUrl('/?', {
        maxLength: 500,
        'x-must': 'be a URL that begins with https:// and ends behind the host',
        description: 'Of another S3 server: https://minio.example. Left out: that of Amazon for the region.',
      }),
    ),
    region: Type.String({
      pattern: '^[a-z0-9-]{1,64}$',
      'x-must': 'have 1 to 64 small letters, digits and hyphens',
      examples: ['eu-central-1'],
    }),
    bucket: Type.String({
      pattern: '^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$',
      'x-must':
        'be the name of a bucket: 3 to 63 small letters, digits, dots and hyphens, a letter or digit at both ends',
    }),
    prefix: Type.Optional(
      Type.String({
        // S3's safe characters. No segment is `.` or `..`, which URLs normalize away.
        pattern: "^(?!/)(?!(?:.*/)?\\.{1,2}(?:/|$))[A-Za-z0-9!_.*'()/=-]{0,400}$",
        'x-must':
          "have at most 400 letters, digits and characters of !-_.*'()/=, no slash first, and no part that is a dot or two",
        description: 'What the names of all objects begin with: `annals/`.',
      }),
    ),
    accessKeyId: Type.String({ minLength: 1, maxLength: 200, pattern: '^[!-~]+$', 'x-must': visible }),
    secretAccessKey: Type.String({ minLength: 1, maxLength: 500 }),
    ...batchMembers,
  },
  { $id: 'S3Target', additionalProperties: false },
);
export type S3Members = Static<typeof S3Target>;

export const SplunkTarget = Type.Object(
  {
    type: Type.Literal('splunk'),
    url: targetUrl('(?:/[^?#]*)?', { description: 'Of the HTTP Event Collector: https://splunk.example:8088.' }),
    token: Type.String({ minLength: 1, maxLength: 500, pattern: '^[!-~]+$', 'x-must': visible }),
    index: Type.Optional(Type.String({ minLength: 1, maxLength: 80, description: "Left out: the token's." })),
    sourcetype: Type.Optional(Type.String({ minLength: 1, maxLength: 200, description: "Left out: the token's." })),
    ...batchMembers,
  },
  { $id: 'SplunkTarget', additionalProperties: false },
);
export type SplunkMembers = Static<typeof SplunkTarget>;

export const alertLimits = { count: 1_000, minutes: 1_440, recipients: 10 } as const;

const emailAddress = '^[^\\s\\u0000-\\u001f\\u007f@<>()[\\],;:"\\\\]+@[^\\s\\u0000-\\u001f\\u007f@<>()[\\],;:"\\\\]+$';
const oneAddress = Type.String({ maxLength: 254, pattern: emailAddress, 'x-must': 'be one e-mail address' });

export const EmailTarget = Type.Object(
  {
    type: Type.Literal('email'),
    to: Type.Union(
      [oneAddress, Type.Array(oneAddress, { minItems: 1, maxItems: alertLimits.recipients, uniqueItems: true })],
      {
        'x-must': `be one e-mail address, or a list of 1 to ${alertLimits.recipients}`,
        description: 'One address, or a list of them. Each gets an e-mail of its own.',
      },
    ),
    threshold: Type.Optional(
      Type.Object(
        {
          count: Type.Integer({ minimum: 1, maximum: alertLimits.count, description: 'So many changes …' }),
          minutes: Type.Integer({ minimum: 1, maximum: alertLimits.minutes, description: '… within so many minutes.' }),
        },
        { $id: 'AlertThreshold', additionalProperties: false, description: 'What raises the alert. Default: 1 in 1.' },
      ),
    ),
    values: Type.Optional(Type.Boolean({ description: 'Whether the e-mail shows values. Default: false.' })),
  },
  { $id: 'EmailTarget', additionalProperties: false },
);
export type EmailMembers = Static<typeof EmailTarget>;
