import type { HttpServer } from './http-server-type.ts';
import { parseQueryString } from './query-parameters.ts';

/** Bytes. Their senders are not authenticated yet, so a form gets little memory. */
export const maxFormBytes = 16 * 1024;

/** The bodies of this plugin's routes are forms, as QueryParameters. Any other body is null. */
export function takeForms(app: HttpServer): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser<Buffer>('application/x-www-form-urlencoded', { parseAs: 'buffer' }, (_request, body, done) =>
    // A form is ASCII. Decoded as latin1, any other byte is a fault of its parameter.
    done(null, parseQueryString(body.toString('latin1'))),
  );
  app.addContentTypeParser('*', (_request, _payload, done) => done(null, undefined));
}
