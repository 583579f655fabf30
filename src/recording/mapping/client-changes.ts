import type { ImportedLine } from './import-line.ts';
import type { MappedChange } from './row-change.ts';

/** A client of the recorder, with the rights that it has now. */
export interface RecordingClient {
  /** The actor of its changes that name none. */
  readonly name: string;
  /** The tenant of its changes. */
  readonly tenant: string;
  /** Whether it has the scope `recorder.actor_set`. */
  readonly maySetActor: boolean;
}

export const otherTenant = 'is mapped to another tenant than that of the path';
const noActorScope = '"actor" needs the scope recorder.actor_set';

/** What becomes of a line that a client sent, when it comes and when it is tried again. `identity`: what identifies it besides an `id`. */
export function changeOfClient(read: ImportedLine, client: RecordingClient, identity?: Uint8Array): ImportedLine {
  if (read.kind !== 'change') return read;
  const { change, hasId, hasActor } = read;
  if (identity === undefined && !hasId) return { kind: 'rejected', reason: '"id" is missing' };
  if (hasActor && !client.maySetActor) return { kind: 'rejected', reason: noActorScope };
  if (identity !== undefined) change.identity = identity;
  if (!hasActor) change.actor = client.name;
  return read;
}

/** Why a client may not have a row recorded as it was mapped. Undefined: it may. */
export function refusalOfRow(mapped: MappedChange, client: RecordingClient): string | undefined {
  if (mapped.tenant !== undefined && mapped.tenant !== client.tenant) return otherTenant;
  return mapped.kind === 'change' && mapped.hasActor && !client.maySetActor ? noActorScope : undefined;
}
