import type { MappedChange } from '../../recording/mapping/row-change.ts';

/** What one row change, or one truncate, of a transaction becomes. */
export interface Step {
  /** How many row changes of the transaction end with this one. A move between partitions counts as two. */
  readonly rows: number;
  /** As the mapping has it. */
  readonly table: string;
  readonly changes: readonly MappedChange[];
  /** The row's change as text, masked, to be kept where it can never be recorded. */
  content(): string;
  /** The table was truncated: all its documents are deleted. */
  readonly truncate?: Truncate;
}

export interface Truncate {
  /** As the mapping has it. */
  readonly table: string;
  readonly actor: string;
  /** JSON text of an object. */
  readonly context: string | undefined;
}

/** Roughly the bytes of a change beside its paths. */
const bytesOfChange = 300;

/** Roughly the bytes that a step takes in memory. */
export function bytesOf({ changes }: Step): number {
  return changes.reduce((sum, change) => sum + sizeOf(change), bytesOfChange);
}

/** A step as text, to be read by `readStep`. */
export function stepText(step: Step): string {
  const changes = step.changes.map((mapped) =>
    mapped.kind === 'change'
      ? { ...mapped, change: { ...mapped.change, identity: hexOf(mapped.change.identity) } }
      : mapped,
  );
  return JSON.stringify({ ...step, changes, content: step.content() });
}

export function readStep(text: string): Step {
  const { content, changes, ...step } = JSON.parse(text);
  for (const { change } of changes) if (change !== undefined) change.identity = Buffer.from(change.identity, 'hex');
  return { ...step, changes, content: () => content };
}

function hexOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex');
}

function sizeOf(mapped: MappedChange): number {
  if (mapped.kind === 'change') return mapped.change.paths.length + bytesOfChange;
  return mapped.kind === 'rejected' ? mapped.content.length : 0;
}
