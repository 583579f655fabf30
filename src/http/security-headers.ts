import { Socket } from 'node:net';
import helmet from 'helmet';
import type { HstsScope } from '../core/config/values.ts';
import { nodeHttp } from '../core/node-http.ts';

/**
 * The headers that tell browsers what they may do with an answer, by their names in lower case. Answers are data: no page
 * may run or frame them. Pages bring their own, wider policy. They are the same for all answers, so they are made once: to
 * make them for each request took an eighth of the program's own time of a small one.
 */
export function securityHeaders(hsts: HstsScope): Record<string, string> {
  const message = new nodeHttp.IncomingMessage(new Socket());
  const response = new nodeHttp.ServerResponse(message);
  const setHeaders = helmet({
    contentSecurityPolicy: { useDefaults: false, directives: { defaultSrc: ["'none'"], frameAncestors: ["'none'"] } },
    strictTransportSecurity: hsts === 'off' ? false : { includeSubDomains: hsts === 'subdomains' },
    xFrameOptions: { action: 'deny' },
    // For browsers long gone, and for documents that open windows: of no use to data.
    crossOriginOpenerPolicy: false,
    originAgentCluster: false,
    xDnsPrefetchControl: false,
    xDownloadOptions: false,
    xPermittedCrossDomainPolicies: false,
    xXssProtection: false,
  });
  setHeaders(message, response, (error) => {
    if (error !== undefined) throw error;
  });
  return Object.fromEntries(Object.entries(response.getHeaders()).map(([name, value]) => [name, String(value)]));
}
