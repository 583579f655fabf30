import type { HttpServer } from '../../http/http-server-type.ts';
import { whileListening } from '../../http/while-listening.ts';
import type { Database } from '../../postgres/database.ts';
import { createValueIndex } from './value-index.ts';

/** Milliseconds. Annals builds the index once; a check whether it exists costs almost nothing. */
const lookEvery = 60_000;

/**
 * The background work of custom entities: it builds the index for filters after the start. Queries use the index once it
 * exists.
 */
export async function customEntitiesUpkeep(app: HttpServer, { db }: { db: Database }): Promise<void> {
  whileListening(app, {
    upkeep: [
      {
        what: 'making the index for filters of instances',
        every: lookEvery,
        work: async () => {
          if (await createValueIndex(db)) app.log.info('the index for filters of instances is made');
        },
      },
    ],
  });
}
