import type { Restriction } from '../http/restriction.ts';

/** Who calls, and what the caller may see. */
export interface Caller {
  readonly tenant: string;
  readonly restriction?: Restriction | undefined;
}

/** JSON text of a part of an answer. */
export interface TextAnswer {
  readonly text: string;
  /** What it leaves out, in words; undefined where it leaves out nothing. */
  readonly left?: string | undefined;
  /** Of a list: how many values it has. */
  readonly shown?: number | undefined;
}

/** What the tools ask of the change history, as JSON texts of at most `maxBytes`. All of it throws AnnalsErrors. */
export interface HistoryTexts {
  changes(
    tenant: string,
    asked: {
      q: string;
      page: number;
      size: number;
      maxBytes: number;
      withRef: boolean;
      restriction: Restriction | undefined;
    },
  ): Promise<{ text: string; shown: number; left: number; cut: number; total: number }>;
  counts(
    caller: Caller,
    asked: {
      q: string;
      by: 'time' | 'entity' | 'type' | 'actor' | 'path';
      size: number;
      buckets: number;
      timeZone?: string | undefined;
    },
    maxBytes: number,
  ): Promise<TextAnswer>;
  names(
    caller: Caller,
    asked: {
      field: 'document' | 'path' | 'entity' | 'actor' | 'related.entity';
      entity?: string | undefined;
      prefix: string;
      changedBefore?: string | undefined;
      size: number;
    },
    maxBytes: number,
  ): Promise<TextAnswer>;
  change(caller: Caller, ref: string, maxBytes: number): Promise<TextAnswer>;
  document(
    caller: Caller,
    asked: { entity: string; entityId: string; at?: string | undefined; changes?: number | undefined },
    maxBytes: number,
  ): Promise<TextAnswer>;
}
