import pg from 'pg';
import { type Source, withSource } from '../db/source.ts';
import { readPublication } from './publication.ts';
import { dropSlot } from './slot.ts';

/** Drops the slot and the publication at the source. Says which of them were there. */
export async function removeCapture(source: Source, slot: string): Promise<{ slot: boolean; publication: boolean }> {
  return await withSource(source, async (client) => {
    const hadSlot = await dropSlot(client, slot);
    const hadPublication = (await readPublication(client, slot)) !== 'missing';
    if (hadPublication) await client.query(`drop publication ${pg.escapeIdentifier(slot)}`);
    return { slot: hadSlot, publication: hadPublication };
  });
}
