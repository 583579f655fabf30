import type { Subscription } from '@annals/client';

export type TargetType = 'webhook' | 'http' | 's3' | 'splunk' | 'email';

/** A target as the service shows it: its members depend on its type. */
interface TargetMembers {
  readonly type: TargetType;
  readonly [member: string]: unknown;
}

export function targetOf({ target }: Pick<Subscription, 'target'>): TargetMembers {
  return target as Pick<TargetMembers, 'type'> & Readonly<Record<string, unknown>>;
}

/** A member of a target, as the form asks for it. */
export interface TargetField {
  /** The member; `threshold.count` is one of an object. */
  readonly name: string;
  readonly label: string;
  readonly hint?: string;
  readonly kind: 'text' | 'addresses' | 'secret' | 'number' | 'choice' | 'check' | 'headers';
  readonly placeholder?: string;
  readonly isRequired?: true;
  /** The values of a choice with their words. The first is what the service takes without one. */
  readonly choices?: readonly (readonly [string, string])[];
}

const headers: TargetField = {
  name: 'headers',
  label: 'Headers',
  hint: 'Sent with each request. Their values are kept encrypted, and never shown again.',
  kind: 'headers',
};

const batches: readonly TargetField[] = [
  {
    name: 'format',
    label: 'Format',
    kind: 'choice',
    choices: [
      ['annals', 'Changes, as the feed has them'],
      ['cloudevents', 'CloudEvents 1.0'],
    ],
  },
  { name: 'maxChanges', label: 'Changes of a batch', hint: 'At most. Empty: 1,000.', kind: 'number' },
  { name: 'maxBytes', label: 'Bytes of a batch', hint: 'At most. Empty: 1 MiB.', kind: 'number' },
  {
    name: 'maxSeconds',
    label: 'Seconds of a batch',
    hint: 'A batch goes out so long after its first change. Empty: 10.',
    kind: 'number',
  },
];

/** What each kind of target is called, what it is for, and what it needs. */
export const targets: Readonly<
  Record<TargetType, { readonly name: string; readonly use: string; readonly fields: readonly TargetField[] }>
> = {
  webhook: {
    name: 'Webhook',
    use: 'One signed POST a change, at least once, the changes of a document in their order.',
    fields: [
      { name: 'url', label: 'Address', kind: 'text', placeholder: 'https://erp.example.com/changes', isRequired: true },
      headers,
      {
        name: 'signing',
        label: 'Signature',
        hint: 'It cannot be changed later. What checks the signatures is shown when you save.',
        kind: 'choice',
        choices: [
          ['hmac', 'A secret that both sides have (HMAC)'],
          ['ed25519', 'A public key that the receiver has (Ed25519)'],
        ],
      },
      {
        name: 'concurrency',
        label: 'Concurrency',
        hint: 'Requests at the same time, 1 to 8. Empty: 4.',
        kind: 'number',
      },
    ],
  },
  http: {
    name: 'HTTP batches',
    use: 'Many changes a request, in strict order, at least once: for collectors such as Vector, Datadog or Elastic.',
    fields: [
      { name: 'url', label: 'Address', kind: 'text', placeholder: 'https://logs.example.com/ingest', isRequired: true },
      headers,
      {
        name: 'encoding',
        label: 'Encoding',
        kind: 'choice',
        choices: [
          ['ndjson', 'NDJSON: one change a line'],
          ['json', 'JSON: one array'],
        ],
      },
      { name: 'gzip', label: 'Compressed with gzip', kind: 'check' },
      ...batches,
    ],
  },
  s3: {
    name: 'Files in S3',
    use: 'Compressed files of changes by day, no change twice, with a manifest each day.',
    fields: [
      { name: 'bucket', label: 'Bucket', kind: 'text', isRequired: true },
      { name: 'region', label: 'Region', kind: 'text', placeholder: 'eu-central-1', isRequired: true },
      {
        name: 'endpoint',
        label: 'Endpoint',
        hint: 'Of a server other than Amazon’s.',
        kind: 'text',
        placeholder: 'https://minio.example.com',
      },
      {
        name: 'prefix',
        label: 'Prefix',
        hint: 'The beginning of the name of each file.',
        kind: 'text',
        placeholder: 'annals/',
      },
      { name: 'accessKeyId', label: 'Access key id', kind: 'text', isRequired: true },
      { name: 'secretAccessKey', label: 'Secret access key', kind: 'secret', isRequired: true },
      ...batches,
    ],
  },
  splunk: {
    name: 'Splunk',
    use: 'Batches for the HTTP Event Collector, acknowledged where the server does that.',
    fields: [
      { name: 'url', label: 'Address', kind: 'text', placeholder: 'https://splunk.example.com:8088', isRequired: true },
      { name: 'token', label: 'Token', kind: 'secret', isRequired: true },
      { name: 'index', label: 'Index', hint: 'Empty: that of the token.', kind: 'text' },
      { name: 'sourcetype', label: 'Source type', hint: 'Empty: that of the token.', kind: 'text' },
      ...batches,
    ],
  },
  email: {
    name: 'E-mail alert',
    use: 'One e-mail in 10 minutes at most, with the count and the first 5 changes.',
    fields: [
      {
        name: 'to',
        label: 'To',
        hint: 'One address, or up to 10 with commas between them. Each gets an e-mail of its own.',
        kind: 'addresses',
        placeholder: 'operations@example.com',
        isRequired: true,
      },
      { name: 'threshold.count', label: 'Changes', hint: 'So many changes raise the alert. Empty: 1.', kind: 'number' },
      { name: 'threshold.minutes', label: 'Minutes', hint: 'Within so many minutes. Empty: 1.', kind: 'number' },
      { name: 'values', label: 'With the values of the changes', kind: 'check' },
    ],
  },
};

export const targetTypes = Object.keys(targets) as TargetType[];

/** Where a subscription sends to, on one line. */
export function addressOf(target: TargetMembers): string {
  const { url, bucket, prefix, to } = target;
  if (typeof bucket === 'string') return `${bucket}/${typeof prefix === 'string' ? prefix : ''}`;
  if (Array.isArray(to)) return to.join(', ');
  return [url, to].find((text) => typeof text === 'string') ?? '';
}
