import type { Sealer } from '../../core/sealing.ts';
import type { SealedColumn } from '../../postgres/reseal.ts';

/** Why something is erased: a closed list, since receipts keep the reason for ever. */
export const erasureReasons = ['request', 'law', 'mistake', 'other'] as const;
export type ErasureReason = (typeof erasureReasons)[number];

/** Additional paths to erase, in entries by the actor or related to the document. */
export interface NamedPaths {
  readonly entity: string;
  /** The text of a PathPattern. */
  readonly path: string;
}

/** The person or document of an erasure. */
export type Subject = (NamedPerson | IdentifiedPerson | SubjectDocument) & { readonly paths: readonly NamedPaths[] };

/** All who have the name. */
interface NamedPerson {
  readonly actor: string;
}

interface IdentifiedPerson {
  readonly actorId: string;
  /** Members of contexts: where one equals the id, the context goes, also that of entries of others. */
  readonly context?: readonly string[] | undefined;
}

interface SubjectDocument {
  readonly entity: string;
  readonly entityId: string;
}

/** A subject with its replacement. */
export interface SealedSubject {
  readonly subject: Subject;
  /** `erased-` and a random text. */
  readonly replacement: string;
  /**
   * Texts to replace outside the history: an actor's name and providers' ids, a person's id and the names that nobody
   * else has, or a document's id and names.
   */
  readonly needles: readonly string[];
  /** The id of a person, if it is a number. */
  readonly numbers?: readonly string[] | undefined;
  /** Ids of a person by the id that cannot be a common word: see `Replacing`. */
  readonly anywhere?: readonly string[] | undefined;
  /** The names beside the id of a person. */
  readonly names?: readonly string[] | undefined;
}

export const sealedSubjects: SealedColumn = {
  table: 'change_erasure',
  column: 'subject',
  keys: ['tenant', 'erasure'],
  purposeOf: ({ tenant, erasure }) => purposeOf(String(tenant), String(erasure)),
};

export function sealSubject(sealer: Sealer, tenant: string, erasure: string, sealed: SealedSubject): Uint8Array {
  return sealer.seal(Buffer.from(JSON.stringify(sealed)), purposeOf(tenant, erasure));
}

/** Undefined if none of the secret keys opens it. */
export function openSubject(
  sealer: Sealer,
  { tenant, erasure, subject }: { tenant: string; erasure: string; subject: Uint8Array },
): SealedSubject | undefined {
  const text = sealer.open(subject, purposeOf(tenant, erasure));
  return text && JSON.parse(Buffer.from(text).toString('utf8'));
}

/** The same text for the same subject. */
export function textOfSubject(subject: Subject): string {
  const { paths } = subject;
  if ('actor' in subject) return JSON.stringify(['actor', subject.actor, paths]);
  if ('actorId' in subject) return JSON.stringify(['actorId', subject.actorId, subject.context ?? [], paths]);
  return JSON.stringify(['document', subject.entity, subject.entityId, paths]);
}

function purposeOf(tenant: string, erasure: string): string {
  return `subject of erasure ${tenant} ${erasure}`;
}
