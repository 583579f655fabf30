import type { CacheControl, ProviderName } from '../../providers/port.ts';
import { type Members, refused } from '../formats/members.ts';

/** The vendor's maximum in a request. */
const maxCacheControls = 4;

/** Reads what a request has its vendor cache. */
export class CacheControls {
  /** Whether any is for an hour, which has a price of its own. */
  hasHour = false;
  readonly #provider: ProviderName;
  #count = 0;

  constructor(provider: ProviderName) {
    this.#provider = provider;
  }

  /** The `cache_control` of an object; undefined without one. */
  of(holder: Members): CacheControl | undefined {
    const control = holder.object('cache_control');
    if (control === undefined) return undefined;
    const place = holder.at('cache_control');
    if (this.#provider !== 'anthropic') throw refused(place, 'is only taken by models of anthropic');
    control.refuseOthers(['type', 'ttl']);
    if (control.one('type', ['ephemeral']) === undefined) throw refused(control.at('type'), 'is required');
    const ttl = control.one('ttl', ['5m', '1h']);
    this.#count += 1;
    if (this.#count > maxCacheControls) throw refused(place, `is one of more than ${maxCacheControls}`);
    if (ttl === '1h') this.hasHour = true;
    return ttl === undefined ? {} : { ttl };
  }

  /** The same, to spread. */
  in(holder: Members): { cache?: CacheControl } {
    const cache = this.of(holder);
    return cache === undefined ? {} : { cache };
  }
}
