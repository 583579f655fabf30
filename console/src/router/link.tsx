import type { ComponentChildren } from 'preact';
import { addressOf, navigate, type Target } from './location.ts';

interface LinkProps {
  readonly to: Target;
  readonly children: ComponentChildren;
  readonly class?: string | undefined;
  readonly title?: string | undefined;
  readonly 'aria-current'?: 'page' | 'true' | undefined;
  readonly 'aria-label'?: string | undefined;
  readonly onFollow?: (() => void) | undefined;
}

/** A link to a view of the console. Opened in another tab it is an ordinary address. */
export function Link({ to, children, onFollow, ...rest }: LinkProps) {
  const follow = (event: MouseEvent) => {
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey) return;
    event.preventDefault();
    navigate(to);
    onFollow?.();
  };
  return (
    <a {...rest} href={addressOf(to)} onClick={follow}>
      {children}
    </a>
  );
}
