import type { Change } from '../recording/change.ts';

/** Marks the requests of a relay. Their `traceparent` is the trace of the relay's batch, to which no change belongs. */
export const relayHeader = 'annals-relay';

const mark = 'derived=';

/** The header's value: a bit for each line, set where the relay derived the correlation id. */
export function relayHeaderOf(derived: readonly boolean[]): string {
  const bits = Buffer.alloc(Math.ceil(derived.length / 8));
  derived.forEach((isDerived, index) => {
    if (isDerived) bits.writeUInt8(bits.readUInt8(index >> 3) | (1 << (index & 7)), index >> 3);
  });
  return `${mark}${bits.toString('base64url')}`;
}

/** Whether the correlation id of a line is derived, by the header's value. Older relays do not say. */
export function readRelayHeader(value: string | readonly string[] | undefined): (index: number) => boolean {
  if (typeof value !== 'string' || !value.startsWith(mark)) return () => false;
  const bits = Buffer.from(value.slice(mark.length), 'base64url');
  return (index) => ((bits[index >> 3] ?? 0) & (1 << (index & 7))) !== 0;
}

/** The change, whose correlation id is no content of it. */
export function asDerived(change: Change): Change {
  return { ...change, derived: { ...change.derived, correlationId: true } };
}
