import { hash } from 'node:crypto';
import { compactText } from '../../../core/json/text.ts';
import { identityLength } from '../../../recording/change.ts';
import type { DebeziumEvent } from './read-event.ts';

/**
 * The members of `source` that identify a change. The connector's version and the times of the envelope do not: they
 * can differ between two deliveries of one event.
 */
const sourceMembers = 'name db schema table collection lsn txid gtid file pos row tsms ord lsid txnnumber'.split(' ');

/**
 * The identity of a change that Debezium emitted: the same for each delivery of an event, unique per event
 * (recording.md 4). `id`: the document's.
 */
export function identityOfEvent(
  { op, source, before, after, updateDescription }: DebeziumEvent,
  id: string | undefined,
): Buffer {
  const text = JSON.stringify([
    ...sourceMembers.map((member) => source.get(member) ?? null),
    op,
    id ?? null,
    before === undefined ? null : compactText(before),
    after === undefined ? ((updateDescription && compactText(updateDescription)) ?? null) : compactText(after),
  ]);
  return hash('sha256', `annals:debezium:${text}`, 'buffer').subarray(0, identityLength);
}
