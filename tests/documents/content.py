"""Content of the documents in this folder: `make documents` writes it, and the tests look for all of it."""

from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent

# The letter.

TITLE = "年度报告 Annual report"
PARAGRAPHS = (
    "第一段：公司在二零二五年的收入增长了百分之十五。Revenue grew by 15 per cent in 2025.",
    "第二段：员工人数从八百人增加到一千二百人，办公室搬到了上海。The office moved to Shanghai in May.",
)
LINK_BEFORE, LINK_TEXT, LINK_URL = (
    "详情请见 For details see ",
    "完整报告 the full report",
    "https://example.com/report?year=2025",
)
DATA_HEADING = "数据 Figures"
TABLE = (
    ("城市 City", "收入 Revenue", "备注 Remark"),
    ("北京 Beijing", "1,200", "稳定 steady"),
    ("上海 Shanghai", "3,400", "甲|乙"),
    ("广州 Guangzhou", "560", "新开 opened"),
)
STEPS_HEADING = "下一步 Next steps"
ITEMS = ("第一项：扩大团队", "second item: open a branch", "第三项：降低成本")
INNER_ITEM = "内层项 an inner item"
STEPS = ("签合同 sign", "付款 pay")
NOTE_TEXT, FOOTNOTE = "利润见脚注 Profit is noted below", "脚注：未经审计 not audited"
ENDING = "此致敬礼 Yours sincerely, 王小明"

# The book.


@dataclass(frozen=True, kw_only=True)
class Sheet:
    """A sheet of the book, with its cells as shown."""

    name: str
    rows: tuple[tuple[str, ...], ...]
    is_hidden: bool = False


def _sheet(number: int) -> Sheet:
    prices = tuple((number * 7 + place) * 1.5 for place in range(3))
    rows = tuple(
        (name, f"2025-{number % 12 + 1:02}-{place + 1:02}", f"{price:g}")
        for place, (name, price) in enumerate(zip(("苹果 apple", "梨|pear", f"桃 {number}"), prices, strict=True))
    )
    head = ("产品 Product", "日期 Date", "金额 Amount")
    name = f"销售{number}" if number % 2 else f"Sales & more {number}"
    return Sheet(name=name, rows=(head, *rows, ("合计 Total", "", f"{sum(prices):g}")), is_hidden=number == 29)


SHEETS = tuple(_sheet(number) for number in range(1, 31))

# The deck.


@dataclass(frozen=True, kw_only=True)
class Slide:
    """A slide of the deck."""

    title: str
    lines: tuple[str, ...]
    link: str
    note: str
    rows: tuple[tuple[str, ...], ...] = ()


SLIDES = tuple(
    Slide(
        title=f"第{number}张幻灯片 Slide {number}",
        lines=(f"要点甲 {number} first point", f"要点乙 {number} second point"),
        link=f"https://example.com/slide/{number}",
        note=f"演讲者备注 {number}: say hello to page {number}.",
        rows=(("季度 Quarter", "数 Count"), ("一季度 Q1", "41"), ("二季度 Q2", "57")) if number == 3 else (),
    )
    for number in range(1, 11)
)
SLIDE_LINK_TEXT = "链接 link"

# The long one, a page each.

LONG_PAGES = tuple(
    (
        f"第{number}章 Chapter {number}",
        f"这是第{number}页的正文，共有三百页。This is the text of page {number} of three hundred.",
        f"编号 No. {number * 7919 % 100_003}：流水账记录，金额为 {number * 13} 元。",
    )
    for number in range(1, 301)
)

# The scan.

SCAN = ("合同编号 20250816", "This agreement is made in Shanghai.", "甲方应当在三十日内付款。")

# Plain texts, and a table as text, in the encodings of each language.

SIMPLIFIED = "这是一个测试文件，用来检查编码识别是否正确。\n第二行：价格 12.50 元。\n"
TRADITIONAL = "這是一個測試檔案，用來檢查編碼識別是否正確。\n第二行：價格 12.50 元。\n"
JAPANESE = "これはテストです。日本語の文字コードを判定します。\n価格は1200円。\n"
TEXTS = {
    "gb18030": SIMPLIFIED,
    "big5": TRADITIONAL,
    "utf-16": SIMPLIFIED,
    "utf-16-le": SIMPLIFIED,
    "utf-16-be": TRADITIONAL,
    "shift_jis": JAPANESE,
}
CSV_ROWS = {
    "gb18030": (("姓名", "生日", "备注"), ("张三", "1990-01-01", "他说：“好”"), ("李四", "1985-12-31", '甲,乙 "丙"')),
    "big5": (("姓名", "生日", "備註"), ("張三", "1990-01-01", "台北"), ("李四", "1985-12-31", "高雄, 台南")),
    "utf-16": (("姓名", "生日", "备注"), ("张三", "1990-01-01", "北京"), ("李四", "1985-12-31", "两行\n文字")),
    "shift_jis": (("名前", "日付", "備考"), ("さくら", "2020-04-01", "東京"), ("たろう", "2021-05-02", "大阪, 京都")),
}

# The mail.

SUBJECT = "会议通知 Meeting"
SENDER, RECIPIENT = "王小明 <wang@example.com>", "Ann Lee <ann@example.com>"
SENT_TIME = "Tue, 15 Jul 2025 09:30:00 +0800"
BODY = ("各位同事：", "会议改到周五上午十点。The meeting is on Friday.", "请提前阅读附件。")
ATTACHMENT_NAME, ATTACHED_TEXT = "议程 agenda.txt", "一、开场 二、讨论"

PASSWORD = "secret-密码"
