import http from 'node:http';
import https from 'node:https';
import { resolve as resolvePath } from 'node:path';
import { pathToFileURL } from 'node:url';
import { openNodeRequest } from '../context/middlewares.ts';
import type { RequestOptions, Resolve } from '../context/request.ts';
import { shared } from '../context/shared.ts';

interface ContextModule {
  readonly resolve?: Resolve<http.IncomingMessage>;
  readonly options?: RequestOptions;
}

/** Opens a context for each request of Node's HTTP servers, by the module of ANNALS_CONTEXT. Throws if it has no resolve. */
export async function contextFromModule(file: string): Promise<void> {
  const { resolve, options = {} }: ContextModule = await import(pathToFileURL(resolvePath(file)).href);
  if (typeof resolve !== 'function') throw new TypeError(`ANNALS_CONTEXT: ${file} exports no function named resolve`);
  for (const servers of [http.Server, https.Server]) openContexts(servers.prototype, resolve, options);
}

function openContexts(server: http.Server, resolve: Resolve<http.IncomingMessage>, options: RequestOptions): void {
  const emit = server.emit;
  server.emit = function (this: http.Server, event: string, ...values: unknown[]): boolean {
    const go = (): boolean => Reflect.apply(emit, this, [event, ...values]);
    if (event !== 'request') return go();
    const [request, response] = values as [http.IncomingMessage, http.ServerResponse];
    return shared.storage.run(openNodeRequest(request, response, resolve, options), go);
  } as typeof emit;
}
