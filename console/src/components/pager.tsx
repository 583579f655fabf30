import { Button } from './button.tsx';
import { countText } from './numbers.ts';

interface PagerProps {
  /** From 1. */
  readonly page: number;
  readonly pages: number;
  readonly onPage: (page: number) => void;
}

/** The pages of a list whose total is known. */
export function Pager({ page, pages, onPage }: PagerProps) {
  if (pages < 2 && page === 1) return null;
  return (
    <nav class="pager" aria-label="Pages">
      <Button icon="previous" aria-label="Previous page" disabled={page <= 1} onClick={() => onPage(page - 1)} />
      <span class="number">
        Page {countText(page)} of {countText(pages)}
      </span>
      <Button icon="next" aria-label="Next page" disabled={page >= pages} onClick={() => onPage(page + 1)} />
    </nav>
  );
}

interface CursorPagerProps {
  readonly onPrevious: (() => void) | undefined;
  readonly onNext: (() => void) | undefined;
}

/** A list that goes on by cursors. A direction without anything more is undefined. */
export function CursorPager({ onPrevious, onNext }: CursorPagerProps) {
  if (onPrevious === undefined && onNext === undefined) return null;
  return (
    <nav class="pager" aria-label="Pages">
      <Button icon="previous" disabled={onPrevious === undefined} onClick={() => onPrevious?.()}>
        Previous
      </Button>
      <Button icon="next" class="icon-last" disabled={onNext === undefined} onClick={() => onNext?.()}>
        Next
      </Button>
    </nav>
  );
}
