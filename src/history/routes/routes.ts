import type { Sealer } from '../../core/sealing.ts';
import type { HttpServer } from '../../http/http-server-type.ts';
import type { HistoryReads } from '../history-reads.ts';
import type { FindPage } from '../search/find-page.ts';
import { documentRoutes } from './document-routes.ts';
import { entryRoutes } from './entry-routes.ts';
import { listRoute } from './list-route.ts';
import { nameRoutes } from './name-routes.ts';
import { clientReads, viewerReads } from './operation.ts';
import { changeRecorderRoutes } from './recorder-routes.ts';
import { summaryRoutes } from './summary-routes.ts';

interface ChangelogRoutesOptions {
  findPage: FindPage;
  reads: HistoryReads;
  sealer: Sealer;
  now: () => number;
}

/** Change history (spec A), and the part of it that the viewer shows (contract 18). */
export async function changelogRoutes(app: HttpServer, options: ChangelogRoutesOptions): Promise<void> {
  for (const api of [clientReads, viewerReads]) {
    summaryRoutes(app, options, api);
    entryRoutes(app, options, api);
    listRoute(app, options, api);
  }
  await nameRoutes(app, options);
  await documentRoutes(app, options);
  await changeRecorderRoutes(app, options);
}
