import type { ImportedLine } from './import-line.ts';
import type { MappedChange } from './row-change.ts';

/** A client of the recorder, with its current rights. */
export interface RecordingClient {
  /** The actor of its changes without one. */
  readonly name: string;
  /** The tenant of its changes. */
  readonly tenant: string;
  /** Whether it has the scope `recorder.actor_set`. */
  readonly maySetActor: boolean;
}

export const otherTenant = 'is mapped to another tenant than that of the path';
const noActorScope = '"actor" needs the scope recorder.actor_set';

/** Applies a client's rights to its line, also on a retry. `identity`: identifies a line without an `id`. */
export function changeOfClient(read: ImportedLine, client: RecordingClient, identity?: Uint8Array): ImportedLine {
  if (read.kind !== 'change') return read;
  const { change, hasId, hasActor } = read;
  if (identity === undefined && !hasId) return { kind: 'rejected', reason: '"id" is missing' };
  if (hasActor && !client.maySetActor) return { kind: 'rejected', reason: noActorScope };
  if (identity !== undefined) change.identity = identity;
  if (!hasActor) change.actor = client.name;
  return read;
}

/** Why a client may not record a row as mapped, or undefined. */
export function refusalOfRow(mapped: MappedChange, client: RecordingClient): string | undefined {
  if (mapped.tenant !== undefined && mapped.tenant !== client.tenant) return otherTenant;
  return mapped.kind === 'change' && mapped.hasActor && !client.maySetActor ? noActorScope : undefined;
}
