import type { DeliveredChange } from '../changes.ts';
import { withHidden } from '../webhooks/webhook-body.ts';
import { webhookIdOf } from '../webhooks/webhook-target.ts';

/** How a change is written: as the feed has it, or as a CloudEvent (version 1.0) whose data it is. */
export type BatchFormat = 'annals' | 'cloudevents';

/** How changes are put together: one a line, or as one JSON array. */
export type BatchEncoding = 'ndjson' | 'json';

export interface BatchLimits {
  readonly maxChanges: number;
  /** Of the text before it is compressed. A change that is longer is a batch of its own. */
  readonly maxBytes: number;
}

export interface TextsWanted {
  readonly tenant: string;
  readonly format: BatchFormat;
  /** Paths whose values are masked. */
  readonly hide: readonly string[];
  /** The public address of the service; undefined where nobody has told it. */
  readonly baseUrl: string | undefined;
}

/** The texts of changes in a format, in their order. */
export function textsOf(changes: readonly DeliveredChange[], wanted: TextsWanted): string[] {
  const { format, hide } = wanted;
  return changes.map((change) => {
    const item = withHidden(change.text, hide);
    return format === 'annals' ? item : cloudEventText(change, item, wanted);
  });
}

/** What still fits into a batch. */
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

  /** 0 where the batch has ended, whatever follows. */
  get bytesLeft(): number {
    return this.changesLeft === 0 ? 0 : Math.max(0, this.#limits.maxBytes - this.#bytes);
  }

  /** Returns false where the change does not fit. The first one always does. */
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

/** A tenant's changes have this source, below the public address where it is known. */
export function sourceOf({ tenant, baseUrl }: Pick<TextsWanted, 'tenant' | 'baseUrl'>): string {
  return `${baseUrl ?? ''}/changelog/${tenant}`;
}

/** Its `source` and `id` are the same whenever and however often the change is sent. The id is that of webhooks, too. */
function cloudEventText(change: DeliveredChange, item: string, wanted: TextsWanted): string {
  const attributes = JSON.stringify({
    specversion: '1.0',
    id: webhookIdOf(wanted.tenant, change),
    source: sourceOf(wanted),
    type: `annals.change.${change.type}`,
    subject: `${encodeURIComponent(change.entity)}/${encodeURIComponent(change.entityId)}`,
    time: new Date(change.at).toISOString(),
    datacontenttype: 'application/json',
  });
  return `${attributes.slice(0, -1)},"data":${item}}`;
}
