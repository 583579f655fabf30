import type { Database } from '../db/database.ts';
import type { HttpServer } from '../http/http-server-type.ts';
import { whileListening } from '../http/while-listening.ts';
import { createValueIndex } from './value-index.ts';

/** Milliseconds. The index is made once; a look whether it is there costs next to nothing. */
const lookEvery = 60_000;

/** What custom entities want done beside their requests: the index for filters, made after the start and used once it is there. */
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
