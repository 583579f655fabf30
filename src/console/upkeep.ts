import type { HttpServer } from '../http/http-server-type.ts';
import { whileListening } from '../http/while-listening.ts';
import type { Console } from './service.ts';

/** Milliseconds. A session that has expired is refused at once; its row stays until then. */
const every = 60_000;

/** Deletes the sessions and links of the console that have expired. */
export async function consoleUpkeep(app: HttpServer, { sessions }: Pick<Console, 'sessions'>): Promise<void> {
  whileListening(app, { upkeep: [{ what: 'the upkeep of sessions', every, work: () => sessions.upkeep() }] });
}
