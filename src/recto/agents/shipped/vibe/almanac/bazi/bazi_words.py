"""Terms of the four pillars in Chinese and English: stems, branches, elements, ten gods, na yin."""

from __future__ import annotations

from collections.abc import Mapping

from recto.page.prompt.reminder import Locale

# The five elements: each generates the next one and controls the one after that.
ELEMENTS: tuple[str, ...] = ("木", "火", "土", "金", "水")
STEMS: Mapping[str, str] = {
    "甲": "Jia",
    "乙": "Yi",
    "丙": "Bing",
    "丁": "Ding",
    "戊": "Wu",
    "己": "Ji",
    "庚": "Geng",
    "辛": "Xin",
    "壬": "Ren",
    "癸": "Gui",
}
BRANCHES: Mapping[str, str] = {
    "子": "Zi",
    "丑": "Chou",
    "寅": "Yin",
    "卯": "Mao",
    "辰": "Chen",
    "巳": "Si",
    "午": "Wu",
    "未": "Wei",
    "申": "Shen",
    "酉": "You",
    "戌": "Xu",
    "亥": "Hai",
}
PEERS = ("比肩", "劫财")
PLACES = ("year", "month", "day", "hour")

_ENGLISH: Mapping[str, str] = {
    "木": "Wood",
    "火": "Fire",
    "土": "Earth",
    "金": "Metal",
    "水": "Water",
    "阳": "Yang",
    "阴": "Yin",
    "日主": "Day Master",
    "比肩": "Friend",
    "劫财": "Rob Wealth",
    "食神": "Eating God",
    "伤官": "Hurting Officer",
    "偏财": "Indirect Wealth",
    "正财": "Direct Wealth",
    "七杀": "Seven Killings",
    "正官": "Direct Officer",
    "偏印": "Indirect Resource",
    "正印": "Direct Resource",
    "身强": "Strong",
    "身弱": "Weak",
    "中和": "Balanced",
    "顺行": "forward",
    "逆行": "backward",
    "建禄格": "Established Prosperity structure",
    "月刃格": "Month Blade structure",
    "月劫格": "Month Rob structure",
    "杂气格": "Mixed Qi structure",
    "鼠": "Rat",
    "牛": "Ox",
    "虎": "Tiger",
    "兔": "Rabbit",
    "龙": "Dragon",
    "蛇": "Snake",
    "马": "Horse",
    "羊": "Goat",
    "猴": "Monkey",
    "鸡": "Rooster",
    "狗": "Dog",
    "猪": "Pig",
    "海中金": "Metal in the Sea",
    "炉中火": "Fire in the Furnace",
    "大林木": "Wood of the Great Forest",
    "路旁土": "Earth by the Road",
    "剑锋金": "Metal of the Sword's Edge",
    "山头火": "Fire on the Mountain Top",
    "涧下水": "Water in the Ravine",
    "城头土": "Earth of the City Wall",
    "白蜡金": "White Wax Metal",
    "杨柳木": "Willow Wood",
    "泉中水": "Water in the Spring",
    "屋上土": "Earth on the Roof",
    "霹雳火": "Fire of Lightning",
    "松柏木": "Pine and Cypress Wood",
    "长流水": "Long Flowing Water",
    "沙中金": "Metal in the Sand",
    "山下火": "Fire below the Mountain",
    "平地木": "Wood of the Plain",
    "壁上土": "Earth on the Wall",
    "金箔金": "Gold Leaf Metal",
    "覆灯火": "Fire of the Lamp",
    "天河水": "Water of the Milky Way",
    "大驿土": "Earth of the Post Road",
    "钗钏金": "Metal of Hairpins",
    "桑柘木": "Mulberry Wood",
    "大溪水": "Water of the Great Stream",
    "沙中土": "Earth in the Sand",
    "天上火": "Fire in the Sky",
    "石榴木": "Pomegranate Wood",
    "大海水": "Water of the Great Sea",
}


def word(term: str, locale: Locale) -> str:
    """Return a term in a language: 正官 is Direct Officer, 庚 is Geng (庚), 庚午 is Geng Wu (庚午)."""
    if locale == "zh":
        return term
    if term in _ENGLISH:
        return _ENGLISH[term]
    if term.endswith("格"):
        return f"{_ENGLISH[term[:-1]]} structure"
    return f"{pinyin(term)} ({term})"


def pinyin(term: str) -> str:
    """Return a stem, a branch or a pillar in Latin letters. 午 and 戊 are both Wu."""
    names = {**STEMS, **BRANCHES}
    return " ".join(names[sign] for sign in term)


def cycle_step(start: str, steps: int) -> str:
    """Return the element some steps further in the cycle: 1 is generated, 2 controlled, 3 controlling, 4 generating."""
    return ELEMENTS[(ELEMENTS.index(start) + steps) % len(ELEMENTS)]
