import { AnnalsError } from '../core/errors.ts';
import { consoleTargetOf } from './console-target.ts';
import type { ConsoleAccess } from './credentials.ts';
import type { HttpServer } from './http-server-type.ts';

/**
 * Checks where a request below the path of the console comes from, before anything else is checked, and that its body is
 * JSON: a page of another site can send other bodies without asking. To be called before the hook that checks the session.
 */
export function guardConsole(app: HttpServer, consoleAccess: ConsoleAccess): void {
  app.addHook('onRequest', (request, reply, done) => {
    if (consoleTargetOf(request.raw) === undefined) {
      done();
      return;
    }
    // No header says that an answer is for one person alone, as `Authorization` does, so no cache may keep it.
    reply.headers({ ...consoleAccess.headers(), 'cache-control': 'no-store' });
    done(consoleAccess.faultOfOrigin(request));
  });

  app.addHook('preParsing', (request, _reply, _payload, done) => {
    const { 'content-type': type } = request.headers;
    const isOther = consoleTargetOf(request.raw) !== undefined && type !== undefined && !jsonType.test(type);
    done(isOther ? new AnnalsError('unsupported_media_type', 'The content type must be application/json.') : null);
  });
}

const jsonType = /^\s*application\/json\s*(?:;|$)/i;
