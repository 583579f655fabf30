import type { HttpServer } from '../http/http-server-type.ts';
import { pageRoutes } from './page-routes.ts';
import type { Console } from './service.ts';
import { sessionRoutes } from './session-routes.ts';

/** The console (contract 13): its page and its sessions. Its operations are those of the interface. */
export async function consoleRoutes(app: HttpServer, { sessions, allowsSignIn, page, folder }: Console): Promise<void> {
  await app.register(sessionRoutes, { sessions, allowsSignIn });
  await app.register(pageRoutes, { page, folder });
}
