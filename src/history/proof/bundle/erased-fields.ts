import { type CommittedEntry, type FieldLabel, fieldsOf, labelAt } from '../encoding/fields.ts';
import { hashBytes } from '../tlog/tiles.ts';
import type { Redaction } from './proven-entry.ts';

/**
 * The redaction of an entry without the hashes of fields that are not as an erasure leaves them. Nothing proves the text of an erased field, so another one
 * would stand in the history as if it were erased: without its hash the entry counts as changed.
 */
export function withErasedFields(entry: CommittedEntry, redaction: Redaction): Redaction {
  const fields = fieldsOf(entry);
  const hashes = Buffer.from(redaction.hashes);
  for (const [place, index] of redaction.hidden.entries()) {
    const isThere = index < fields.texts.length;
    if (isThere && isErased(labelAt(fields, index), fields.texts[index] ?? null)) continue;
    hashes.fill(0, place * hashBytes, (place + 1) * hashBytes);
  }
  return { ...redaction, hashes };
}

const replaced = /^erased-[0-9a-f]{16}$/;

function isErased(label: FieldLabel, text: string | null): boolean {
  switch (label) {
    case 'identity':
      // A hash under the key of the installation.
      return true;
    case 'context':
      return text === null;
    case 'before':
    case 'after':
      return text === '"[erased]"';
    case 'recordedBy': {
      const { by, sub } = JSON.parse(text ?? '{}') as { by?: string; sub?: string };
      return [by, sub].every((name) => name === undefined || replaced.test(name));
    }
    default:
      return text !== null && replaced.test(text);
  }
}
