import type { DeliveredChange } from '../changes.ts';
import { withHidden } from '../webhooks/webhook-body.ts';
import { webhookIdOf } from '../webhooks/webhook-target.ts';

/** A change as in the feed, or as the data of a CloudEvent (1.0). */
export type BatchFormat = 'annals' | 'cloudevents';

/** One change per line, or a JSON array. */
export type BatchEncoding = 'ndjson' | 'json';

export interface BatchLimits {
  readonly maxChanges: number;
  /** Uncompressed. A longer change is a batch of its own. */
  readonly maxBytes: number;
}

export interface TextOptions {
  readonly tenant: string;
  readonly format: BatchFormat;
  /** Paths whose values are masked. */
  readonly hide: readonly string[];
  /** The public base URL of the service, if configured. */
  readonly baseUrl: string | undefined;
}

/** The texts of changes in a format, in order. */
export function textsOf(changes: readonly DeliveredChange[], options: TextOptions): string[] {
  const { format, hide } = options;
  return changes.map((change) => {
    const item = withHidden(change.text, hide);
    return format === 'annals' ? item : cloudEventText(change, item, options);
  });
}

/** Tracks what still fits into a batch. */
export class BatchRoom {
  readonly #limits: BatchLimits;
  #changes = 0;
  #bytes = 0;

  constructor(limits: BatchLimits) {
    this.#limits = limits;
  }

  get changesLeft(): number {
    return this.#limits.maxChanges - this.#changes;
  }

  /** 0 if the batch is full. */
  get bytesLeft(): number {
    return this.changesLeft === 0 ? 0 : Math.max(0, this.#limits.maxBytes - this.#bytes);
  }

  /** Returns false if the change does not fit. The first one always does. */
  take(text: string): boolean {
    const bytes = Buffer.byteLength(text) + separatorBytes;
    if (this.#changes > 0 && (this.changesLeft === 0 || bytes > this.#limits.maxBytes - this.#bytes)) return false;
    this.#changes += 1;
    this.#bytes += bytes;
    return true;
  }
}

/** Line ends, or the commas and brackets of an array. */
const separatorBytes = 1;

export function joinedTexts(texts: readonly string[], encoding: BatchEncoding): string {
  return encoding === 'json' ? `[${texts.join(',')}]` : texts.map((text) => `${text}\n`).join('');
}

export function mediaTypeOf(format: BatchFormat, encoding: BatchEncoding): string {
  if (encoding === 'ndjson') return 'application/x-ndjson';
  return format === 'annals' ? 'application/json' : 'application/cloudevents-batch+json';
}

/** The source of a tenant's changes, below the public base URL if configured. */
export function sourceOf({ tenant, baseUrl }: Pick<TextOptions, 'tenant' | 'baseUrl'>): string {
  return `${baseUrl ?? ''}/changelog/${tenant}`;
}

/** `source` and `id` are the same each time the change is sent. The id equals `webhook-id`. */
function cloudEventText(change: DeliveredChange, item: string, options: TextOptions): string {
  const attributes = JSON.stringify({
    specversion: '1.0',
    id: webhookIdOf(options.tenant, change),
    source: sourceOf(options),
    type: `annals.change.${change.type}`,
    subject: `${encodeURIComponent(change.entity)}/${encodeURIComponent(change.entityId)}`,
    time: new Date(change.at).toISOString(),
    datacontenttype: 'application/json',
  });
  return `${attributes.slice(0, -1)},"data":${item}}`;
}
