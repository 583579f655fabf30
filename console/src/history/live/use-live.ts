import { useEffect, useMemo } from 'preact/hooks';
import { LiveFeed } from './live-feed.ts';
import { isLive } from './live-switch.ts';

/** Follows a query while the switch is on and somebody sees the tab: a browser has few connections. */
export function useLive(q: string): LiveFeed {
  const feed = useMemo(() => new LiveFeed(q), [q]);
  const isOn = isLive.value;
  useEffect(() => {
    if (!isOn) return;
    feed.connect();
    if (document.visibilityState === 'hidden') feed.disconnect();
    const onVisibility = () => (document.visibilityState === 'visible' ? feed.connect() : feed.disconnect());
    document.addEventListener('visibilitychange', onVisibility);
    return () => {
      document.removeEventListener('visibilitychange', onVisibility);
      feed.disconnect();
    };
  }, [feed, isOn]);
  useEffect(() => () => feed.close(), [feed]);
  return feed;
}
