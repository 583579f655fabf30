import { Icon } from '../../../../console/src/components/icon.tsx';
import { useLanguage } from './language-context.ts';

interface PagerProps {
  readonly page: number;
  readonly pages: number;
  readonly onPage: (page: number) => void;
}

export function Pager({ page, pages, onPage }: PagerProps) {
  const { text, number } = useLanguage();
  if (pages < 2 && page === 1) return null;
  return (
    <nav class="pager" part="pager" aria-label={text('pages')}>
      <span class="pager-side">
        {page > 2 ? (
          <button type="button" class="button quiet" part="button" onClick={() => onPage(1)}>
            {text('newest')}
          </button>
        ) : undefined}
        <button type="button" class="button" part="button" disabled={page === 1} onClick={() => onPage(page - 1)}>
          <Icon name="previous" />
          {text('newer')}
        </button>
      </span>
      <span class="soft">{text('page', { page: number(page), pages: number(pages) })}</span>
      <span class="pager-side end">
        <button type="button" class="button" part="button" disabled={page >= pages} onClick={() => onPage(page + 1)}>
          {text('older')}
          <Icon name="next" />
        </button>
      </span>
    </nav>
  );
}
